//! `turnstone breaker`: what is left alone for a while because it keeps failing.

mod list;
mod reset;

use super::Session;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// `turnstone breaker`.
#[derive(Debug, Subcommand)]
pub enum BreakerCommand {
    /// List what has failed lately and not succeeded since
    List,
    /// Close breakers, so that what they stand before is called again
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
/// Why it failed.
pub async fn run(command: BreakerCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        BreakerCommand::List => list::run(session).await,
        BreakerCommand::Reset(args) => reset::run(args.names, session).await,
    }
}
