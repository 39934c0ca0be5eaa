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
    /// Drain workers: each takes no further jobs, gives back what it cannot finish, and ends, as at SIGTERM
    #[command(
        visible_alias = "terminate",
        after_help = "\
A worker receives this with its next heartbeat, within 5 seconds. The worker of `turnstone dev` ends the whole server.

Examples:
  turnstone worker drain w1
  turnstone worker drain --matching 'batch-*' --dry-run"
    )]
    Drain(Chosen),
    /// Direct workers over HTTP to take no further jobs
    Quiet(Chosen),
}

/// Queries or directs the workers of the fleet.
///
/// # Errors
/// The request fails.
pub async fn run(command: WorkerCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        WorkerCommand::List(args) => list::run(&args, session).await,
        WorkerCommand::Quiet(chosen) => direct::quiet(chosen, session).await,
        WorkerCommand::Drain(chosen) => direct::drain(chosen, session).await,
    }
}
