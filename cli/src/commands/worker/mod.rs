//! `turnstone worker`: runs one, or looks at those of the fleet.

mod direct;
mod list;

use super::Session;
use super::chosen::Chosen;
use crate::commands::serve::worker::RunArgs;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// `turnstone worker`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct WorkerArgs {
    /// The action instead of running one.
    #[command(subcommand)]
    pub command: Option<WorkerCommand>,
    /// How to run one.
    #[command(flatten)]
    pub run: RunArgs,
}

/// `turnstone worker` with a subcommand.
#[derive(Clone, Debug, Subcommand)]
pub enum WorkerCommand {
    /// List the workers of the fleet, with the turns in flight and the last heartbeat of each
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Direct workers over HTTP to take no further jobs; one of Turnstone itself drains when its process gets SIGTERM
    Quiet(Chosen),
    /// Direct workers over HTTP to end; one of Turnstone itself ends when its process gets SIGTERM
    Terminate(Chosen),
}

/// Queries or directs the workers of the fleet.
///
/// # Errors
/// The request fails.
pub async fn run(command: WorkerCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        WorkerCommand::List(args) => list::run(&args, session).await,
        WorkerCommand::Quiet(chosen) => direct::quiet(chosen, session).await,
        WorkerCommand::Terminate(chosen) => direct::terminate(chosen, session).await,
    }
}
