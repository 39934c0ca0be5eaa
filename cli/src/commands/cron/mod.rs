//! `turnstone cron`: jobs that are made at times.

mod apply;
mod change;
mod history;
mod list;

use super::Session;
use super::chosen::{Chosen, Listed};
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Where cron entries are listed.
const CRONS: Listed = Listed { path: &["ojs", "v1", "cron"], list: "crons", name: "name" };

/// `turnstone cron`.
#[derive(Debug, Subcommand)]
pub enum CronCommand {
    /// List cron entries with their next time
    List,
    /// Make or replace an entry, from flags or from a JSON file
    Apply(apply::ApplyArgs),
    /// Stop entries without forgetting them
    Pause(Chosen),
    /// Let entries go on
    Resume(Chosen),
    /// Make an entry's job now, besides its times
    Trigger(Chosen),
    /// Forget entries; jobs that they made stay
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
/// Why it failed.
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
