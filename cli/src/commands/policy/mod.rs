//! `turnstone policy`: evaluates an agent's assertions over recorded engagements.

mod test;

use super::Session;
use clap::Subcommand;
use std::process::ExitCode;

/// `turnstone policy`.
#[derive(Clone, Debug, Subcommand)]
pub enum PolicyCommand {
    /// Evaluate an agent file's assertions on recorded engagements, and show the calls that they would have refused
    Test(test::TestArgs),
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: PolicyCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        PolicyCommand::Test(args) => test::run(args, session).await,
    }
}
