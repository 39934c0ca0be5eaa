//! `turnstone review`: answer what agents ask.

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
    List(list::ListArgs),
    /// Print what is asked, in full
    Show(show::ShowArgs),
    /// Say yes; the parked job goes on
    Approve(decide::DecideArgs),
    /// Say no
    Reject(decide::DecideArgs),
}

/// Runs the command.
///
/// # Errors
/// Why it failed.
pub async fn run(command: ReviewCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        ReviewCommand::List(args) => list::run(&args, session).await,
        ReviewCommand::Show(args) => show::run(&args, session).await,
        ReviewCommand::Approve(args) => decide::run(decide::Answer::Approve, args, session).await,
        ReviewCommand::Reject(args) => decide::run(decide::Answer::Reject, args, session).await,
    }
}
