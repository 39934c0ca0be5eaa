//! `turnstone dead-letter`: jobs that failed for good and wait for a decision.

mod delete;
mod list;
mod retry;

use super::Session;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// `turnstone dead-letter`.
#[derive(Debug, Subcommand)]
pub enum DeadLetterCommand {
    /// List dead letters, with their last error
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Run dead letters again, with all their attempts
    #[command(after_help = "\
Examples:
  turnstone dead-letter retry --queue mail --dry-run
  turnstone dead-letter retry --tag run=7
  turnstone dead-letter list --type email.send -o ids | turnstone dead-letter retry -")]
    Retry(LettersArgs),
    /// Delete dead letters and everything that belongs to them
    Delete(LettersArgs),
}

/// Ids, or a filter.
#[derive(Clone, Debug, Args)]
pub struct LettersArgs {
    /// The jobs' ids or their first characters; `-` reads them from standard input, one per line
    #[arg(value_name = "ID", required_unless_present_any = ["all", "queue", "job_type", "tag"])]
    pub ids: Vec<String>,
    /// Every dead letter of this queue, instead of ids
    #[arg(long, conflicts_with = "ids")]
    pub queue: Option<String>,
    /// Every dead letter of this type, instead of ids
    #[arg(long = "type", conflicts_with = "ids", value_name = "TYPE")]
    pub job_type: Option<String>,
    /// Every dead letter with this tag, instead of ids
    #[arg(long, conflicts_with = "ids", value_name = "TAG")]
    pub tag: Option<String>,
    /// Every dead letter, instead of ids
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,
    /// Only print how many the filter finds, or which are named
    #[arg(long)]
    pub dry_run: bool,
}

impl From<LettersArgs> for super::bulk::JobsArgs {
    fn from(args: LettersArgs) -> Self {
        let LettersArgs { ids, queue, job_type, tag, all, dry_run } = args;
        Self { ids, state: None, queue, job_type, tag, agent: None, error_code: None, all, dry_run }
    }
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: DeadLetterCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        DeadLetterCommand::List(args) => list::run(&args, session).await,
        DeadLetterCommand::Retry(args) => retry::run(args, session).await,
        DeadLetterCommand::Delete(args) => delete::run(args, session).await,
    }
}
