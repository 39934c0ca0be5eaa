//! `turnstone engagement`: look at what an agent does for a user, and go on from it otherwise.

mod fork;
mod show;

use super::Session;
use clap::Subcommand;
use std::process::ExitCode;

/// `turnstone engagement`.
#[derive(Clone, Debug, Subcommand)]
pub enum EngagementCommand {
    /// Show where it stands, and the agents that work for it
    Show {
        /// Its id
        id: String,
    },
    /// Go on from a turn of it as a new engagement, with something changed
    Fork(fork::ForkArgs),
}

/// Runs the command.
///
/// # Errors
/// Why it failed.
pub async fn run(command: EngagementCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        EngagementCommand::Show { id } => show::run(&id, session).await,
        EngagementCommand::Fork(args) => fork::run(args, session).await,
    }
}
