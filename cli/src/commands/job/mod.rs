//! `turnstone job`: enqueue, read, watch, cancel and retry jobs.

mod batch;
mod cancel;
pub mod chosen;
pub mod fields;
mod get;
mod list;
mod push;
pub mod question;
mod results;
mod retry;
pub mod waiting;
pub mod watch;

use super::Session;
use super::bulk::JobsArgs;
use super::dev::timeline::Detail;
use crate::client::ids::Named;
use clap::Subcommand;
use std::process::ExitCode;

/// `turnstone job`.
#[derive(Debug, Subcommand)]
pub enum JobCommand {
    /// Enqueue jobs from a file, standard input or flags, and print their ids
    Push(push::PushArgs),
    /// Print a job with its result and errors, or with --raw its rows as they are stored
    Get(get::GetArgs),
    /// Follow a job, or all jobs with a tag, until they end: exit code 0 when they completed, 1 when not
    #[command(after_help = "\
Examples:
  turnstone job watch 0190a7b2-…
  turnstone job watch --tag run=7")]
    Watch(watch::WatchArgs),
    /// Print the outcome of each job with a tag that has ended, one JSON object per line
    #[command(after_help = "Example: turnstone job results --tag run=7 > results.jsonl")]
    Results(results::ResultsArgs),
    /// Cancel jobs; active ones stop within a second
    #[command(after_help = "\
Examples:
  turnstone job cancel --queue mail --state scheduled --dry-run
  turnstone job cancel --tag run=7
  turnstone job list --state active -o ids | turnstone job cancel -")]
    Cancel(JobsArgs),
    /// Run discarded jobs again, with all their attempts, and failed ones before their time; reviews that were rejected
    /// are opened again
    Retry(JobsArgs),
    /// List jobs, newest first
    #[command(
        visible_alias = "ls",
        after_help = "\
Examples:
  turnstone job list --tag run=7 --state discarded --error-code TIMEOUT
  turnstone job list --meta customer=42 --since 1h"
    )]
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
        JobCommand::Watch(args) => {
            let client = session.client()?;
            match (args.id, args.tag) {
                (_, Some(tag)) => batch::watch(&tag, &client, session).await,
                (id, None) => {
                    let id = client.whole_id(Named::Job, &id.unwrap_or_default()).await?;
                    watch::run(&id, &client, session, Detail::of(session.output)).await
                }
            }
        }
        JobCommand::Results(args) => results::run(&args, session).await,
        JobCommand::Cancel(args) => cancel::run(args, session).await,
        JobCommand::Retry(args) => retry::run(args, session).await,
        JobCommand::List(args) => list::run(&args, session).await,
    }
}

/// Returns a job with these members.
#[cfg(test)]
pub(crate) fn sample(members: &serde_json::Value) -> turnstone_ojs::JobBody {
    let at = "2026-01-31T12:00:00Z";
    let base = serde_json::json!({
        "specversion": "1.0", "id": "j", "type": "a", "queue": "default", "state": "available", "args": [], "meta": {},
        "priority": 0, "attempt": 0, "max_attempts": 3, "created_at": at, "enqueued_at": at,
    });
    crate::client::filled(base, members)
}
