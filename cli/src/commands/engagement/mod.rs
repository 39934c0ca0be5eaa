//! `turnstone engagement`: look at what an agent does for a user, and go on from it otherwise.

mod answer;
mod artifacts;
mod diff;
mod fork;
pub mod list;
mod replay;
mod send;
mod show;
mod transfer;

use super::Session;
use clap::Subcommand;
use std::path::PathBuf;
use std::process::ExitCode;

/// `turnstone engagement`.
#[derive(Clone, Debug, Subcommand)]
pub enum EngagementCommand {
    /// List them, newest first
    List(list::ListArgs),
    /// Show where it stands, and the agents that work for it
    Show {
        /// Its id
        id: String,
    },
    /// Say something more to its agent; it is worked on when what was said before is answered
    Send(send::SendArgs),
    /// Answer what its agent asks its user
    Answer(answer::AnswerArgs),
    /// Go on from a turn of it as a new engagement, with something changed
    Fork(fork::ForkArgs),
    /// Show where two of them part, and what each of their turns cost
    Diff {
        /// The first one's id
        a: String,
        /// The second one's id
        b: String,
    },
    /// List the files that its agent made, or save one of them
    Artifacts(artifacts::ArtifactsArgs),
    /// Write everything that is on record of one that has ended, in the clear, as one document
    Export {
        /// Its id
        id: String,
        /// The file; standard output unless it is given
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        /// Write it although there is a file of that name
        #[arg(long, requires = "to")]
        force: bool,
    },
    /// Take in a document that another server exported
    Import {
        /// The file; `-` is standard input
        file: String,
    },
    /// Run one again from its record, without any model, tool or store, and compare what each phase leaves
    Replay {
        /// A document that was exported (`-` is standard input), or an id
        #[arg(value_name = "FILE|ID")]
        what: String,
    },
}

/// Runs the command.
///
/// # Errors
/// Why it failed.
pub async fn run(command: EngagementCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        EngagementCommand::List(args) => list::run(&args, session).await,
        EngagementCommand::Show { id } => show::run(&id, session).await,
        EngagementCommand::Answer(args) => answer::run(args, session).await,
        EngagementCommand::Send(args) => send::run(args, session).await,
        EngagementCommand::Fork(args) => fork::run(args, session).await,
        EngagementCommand::Diff { a, b } => diff::run(&a, &b, session).await,
        EngagementCommand::Artifacts(args) => artifacts::run(args, session).await,
        EngagementCommand::Export { id, to, force } => transfer::export(&id, (to, force), session).await,
        EngagementCommand::Import { file } => transfer::import(&file, session).await,
        EngagementCommand::Replay { what } => replay::run(&what, session).await,
    }
}
