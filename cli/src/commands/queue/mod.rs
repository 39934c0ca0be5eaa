//! `turnstone queue`: the jobs of queues, and their limits.

mod config;
mod limits;
mod list;
mod pause;
mod purge;
mod show;

use super::Session;
use super::chosen::{Chosen, Listed, Reading};
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// The list of queues.
const QUEUES: Listed =
    Listed { path: &["ojs", "v1", "admin", "queues"], list: "items", name: "name", read: Reading::Pages };

/// `turnstone queue`.
#[derive(Debug, Subcommand)]
pub enum QueueCommand {
    /// List queues with the jobs in each
    #[command(visible_alias = "ls")]
    List,
    /// Print the jobs of a queue, by state
    Show(NameArgs),
    /// Pause queues: their jobs are not claimed; enqueueing continues
    #[command(after_help = "Example: turnstone queue pause --matching 'mail.*' --dry-run")]
    Pause(Chosen),
    /// Resume paused queues
    Resume(Chosen),
    /// Bound a queue, or limit how fast its jobs start
    Set(config::SetArgs),
    /// Delete ended jobs of a queue
    Purge(purge::PurgeArgs),
    /// List the rate limits that jobs share by key
    Limits,
}

/// One name.
#[derive(Clone, Debug, Args)]
pub struct NameArgs {
    /// The queue
    pub name: String,
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: QueueCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        QueueCommand::List => list::run(session).await,
        QueueCommand::Show(args) => show::run(&args.name, session).await,
        QueueCommand::Pause(chosen) => pause::run(chosen, "pause", "paused", session).await,
        QueueCommand::Resume(chosen) => pause::run(chosen, "resume", "resumed", session).await,
        QueueCommand::Set(args) => config::run(&args, session).await,
        QueueCommand::Purge(args) => purge::run(&args, session).await,
        QueueCommand::Limits => limits::run(session).await,
    }
}
