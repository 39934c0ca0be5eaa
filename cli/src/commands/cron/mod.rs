//! `turnstone cron`: jobs that are enqueued at set times.

mod apply;
mod change;
mod history;
mod list;

use super::Session;
use super::chosen::{Chosen, Listed, Reading};
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// The list of cron entries.
const CRONS: Listed =
    Listed { path: &["ojs", "v1", "cron"], list: "crons", name: "name", read: Reading::Whole };

/// `turnstone cron`.
#[derive(Debug, Subcommand)]
pub enum CronCommand {
    /// List cron entries with their next time
    #[command(visible_alias = "ls")]
    List,
    /// Make or replace an entry, from flags or from a JSON file
    Apply(apply::ApplyArgs),
    /// Pause entries without deleting them
    Pause(Chosen),
    /// Resume entries
    Resume(Chosen),
    /// Make an entry's job now, in addition to its scheduled times
    Trigger(Chosen),
    /// Delete entries; jobs that they made stay
    Delete(Chosen),
    /// List the jobs that an entry made
    History(NameArgs),
}

/// One name.
#[derive(Clone, Debug, Args)]
pub struct NameArgs {
    /// The entry
    pub name: String,
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: CronCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        CronCommand::List => list::run(session).await,
        CronCommand::Apply(args) => apply::run(&args, session).await,
        CronCommand::Pause(chosen) => change::enable(chosen, false, session).await,
        CronCommand::Resume(chosen) => change::enable(chosen, true, session).await,
        CronCommand::Trigger(chosen) => change::trigger(chosen, session).await,
        CronCommand::Delete(chosen) => change::delete(chosen, session).await,
        CronCommand::History(args) => history::run(&args.name, session).await,
    }
}
