//! `turnstone review`: answers to the questions of agents.

mod decide;
mod list;
mod show;

use super::Session;
use clap::Subcommand;
use std::process::ExitCode;

/// `turnstone review`.
#[derive(Clone, Debug, Subcommand)]
pub enum ReviewCommand {
    /// List reviews, oldest first
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Print the question, in full
    Show(show::ShowArgs),
    /// Approve; the parked job continues
    Approve(decide::DecideArgs),
    /// Reject
    Reject(decide::DecideArgs),
    /// Report the result of a call whose outcome is unknown; the call counts as made
    Answer(decide::AnswerArgs),
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: ReviewCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        ReviewCommand::List(args) => list::run(&args, session).await,
        ReviewCommand::Show(args) => show::run(&args, session).await,
        ReviewCommand::Approve(args) => decide::run(decide::Decision::Approve, args, session).await,
        ReviewCommand::Reject(args) => decide::run(decide::Decision::Reject, args, session).await,
        ReviewCommand::Answer(args) => decide::report(args, session).await,
    }
}
