//! `turnstone job`: enqueue, read, watch, cancel and retry jobs.

mod cancel;
pub mod fields;
mod get;
mod list;
mod push;
pub mod question;
mod retry;
pub mod waiting;
pub mod watch;

use super::Session;
use super::bulk::JobsArgs;
use clap::Subcommand;
use std::process::ExitCode;

/// `turnstone job`.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Enqueue jobs from a file, standard input or flags, and print their ids
    Push(push::PushArgs),
    /// Print a job with its result and errors, or with --raw its rows as they are stored
    Get(get::GetArgs),
    /// Follow a job until it ends: exit code 0 when it completed, 1 when it did not
    Watch(watch::WatchArgs),
    /// Cancel jobs; active ones stop within a second
    #[command(after_help = "\
Examples:
  turnstone job cancel --queue mail --state scheduled --dry-run
  turnstone job list --state active -o ids | turnstone job cancel -")]
    Cancel(JobsArgs),
    /// Run discarded jobs again, with all their attempts, and failed ones before their time; reviews that were rejected
    /// are opened again
    Retry(JobsArgs),
    /// List jobs, newest first
    List(list::ListArgs),
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: JobCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        JobCommand::Push(args) => push::run(args, session).await,
        JobCommand::Get(args) => get::run(&args, session).await,
        JobCommand::Watch(args) => watch::run(&args.id, &session.client()?, session).await,
        JobCommand::Cancel(args) => cancel::run(args, session).await,
        JobCommand::Retry(args) => retry::run(args, session).await,
        JobCommand::List(args) => list::run(&args, session).await,
    }
}
