//! `turnstone engagement`: look at what an agent does for a user, and fork it.

mod answer;
mod artifacts;
mod diff;
mod follow;
mod fork;
pub mod list;
mod messages;
mod replay;
mod send;
mod show;
mod transfer;

use super::Session;
use crate::client::ids::Named;
use clap::Subcommand;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `turnstone engagement`.
#[derive(Clone, Debug, Subcommand)]
pub enum EngagementCommand {
    /// List engagements, newest first
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Show the state of an engagement, and its delegates
    Show {
        /// Its id, or its first characters
        id: String,
        /// Print the tree of its Agent Spec document instead, with a mark at the node that runs or waits
        #[arg(long)]
        tree: bool,
    },
    /// Print the conversation of an engagement
    Messages {
        /// Its id, or its first characters
        id: String,
    },
    /// Follow the events of an engagement until it ends: exit code 0 when it completed, 1 when it did not
    Follow {
        /// Its id, or its first characters
        id: String,
    },
    /// Send a further input to an engagement; it is processed after the earlier inputs
    Send(send::SendArgs),
    /// Answer an agent's question to its user
    Answer(answer::AnswerArgs),
    /// Fork an engagement: continue from one of its turns as a new engagement, with changes
    Fork(fork::ForkArgs),
    /// Show the first difference of two engagements, and the cost of each of their turns
    Diff {
        /// The first one's id
        a: String,
        /// The second one's id
        b: String,
    },
    /// List the files of an engagement, or save one of them
    Artifacts(artifacts::ArtifactsArgs),
    /// Write the whole record of an ended engagement, in the clear, as one document
    Export {
        /// Its id, or its first characters
        id: String,
        /// The file; standard output by default
        #[arg(long, value_name = "FILE")]
        to: Option<PathBuf>,
        /// Overwrite an existing file
        #[arg(long, requires = "to")]
        force: bool,
    },
    /// Import a document that another server exported
    Import {
        /// The file; `-` is standard input
        file: String,
    },
    /// Run an engagement again from its record, without any model, tool or store, and compare each phase
    Replay {
        /// An exported document (`-` is standard input), or an id or its first characters
        #[arg(value_name = "FILE|ID")]
        what: String,
    },
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: EngagementCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match named_in_full(command, session).await? {
        EngagementCommand::List(args) => list::run(&args, session).await,
        EngagementCommand::Show { id, tree } => show::run(&id, tree, session).await,
        EngagementCommand::Messages { id } => messages::run(&id, session).await,
        EngagementCommand::Follow { id } => follow::run(&id, session).await,
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

/// Returns the command with whole ids in the place of their first characters.
async fn named_in_full(
    mut command: EngagementCommand,
    session: &Session,
) -> anyhow::Result<EngagementCommand> {
    let ids: Vec<&mut String> = match &mut command {
        EngagementCommand::List(_) | EngagementCommand::Import { .. } => Vec::new(),
        EngagementCommand::Show { id, .. }
        | EngagementCommand::Messages { id }
        | EngagementCommand::Follow { id }
        | EngagementCommand::Export { id, .. } => vec![id],
        EngagementCommand::Send(args) => vec![&mut args.id],
        EngagementCommand::Answer(args) => vec![&mut args.id],
        EngagementCommand::Fork(args) => vec![&mut args.id],
        EngagementCommand::Artifacts(args) => vec![&mut args.id],
        EngagementCommand::Diff { a, b } => vec![a, b],
        EngagementCommand::Replay { what } if Path::new(what).exists() => Vec::new(),
        EngagementCommand::Replay { what } => vec![what],
    };
    for id in ids {
        *id = session.client()?.whole_id(Named::Engagement, id).await?;
    }
    Ok(command)
}
