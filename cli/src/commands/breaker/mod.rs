//! `turnstone breaker`: circuit breakers.

mod list;
mod reset;

use super::Session;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// `turnstone breaker`.
#[derive(Debug, Subcommand)]
pub enum BreakerCommand {
    /// List the breakers that are open or half-open, or that count failures
    #[command(visible_alias = "ls")]
    List,
    /// Close breakers and release the jobs that wait for them
    Reset(NamesArgs),
}

/// Names of breakers.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  turnstone breaker reset tool/researcher/web_search\n  \
                        turnstone breaker list -o ids | xargs turnstone breaker reset")]
pub struct NamesArgs {
    /// tool/AGENT/TOOL or model/PROVIDER/MODEL
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: BreakerCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        BreakerCommand::List => list::run(session).await,
        BreakerCommand::Reset(args) => reset::run(args.names, session).await,
    }
}
