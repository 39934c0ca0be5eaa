//! `turnstone workflow`: jobs that wait for one another.

mod list;
mod show;
mod start;
mod watch;

use super::Session;
use super::chosen::{Chosen, Deed, Listed, Reading};
use crate::client::{Client, raw_part};
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// The list of workflows.
const WORKFLOWS: Listed =
    Listed { path: &["ojs", "v1", "workflows"], list: "workflows", name: "id", read: Reading::Slices };

/// `turnstone workflow`.
#[derive(Debug, Subcommand)]
pub enum WorkflowCommand {
    /// Start a chain, group, batch or graph from a JSON file
    #[command(after_help = "Example: turnstone workflow start release.json --watch")]
    Start(start::StartArgs),
    /// List workflows, newest first
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    /// Print a workflow with its steps
    Get(IdArgs),
    /// Follow a workflow until it ends: exit code 0 when it completed, 1 when it did not
    Watch(IdArgs),
    /// End workflows: jobs that have not started never start
    Cancel(Chosen),
}

/// One id.
#[derive(Clone, Debug, Args)]
pub struct IdArgs {
    /// The workflow's id
    pub id: String,
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: WorkflowCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        WorkflowCommand::Start(args) => start::run(&args, session).await,
        WorkflowCommand::List(args) => list::run(&args, session).await,
        WorkflowCommand::Watch(args) => watch::run(&args.id, &session.client()?, session).await,
        WorkflowCommand::Get(args) => show::run(&args.id, session).await,
        WorkflowCommand::Cancel(chosen) => {
            let deed = Deed { verb: "cancel", done: "cancelled" };
            let act = |client: Client, id: String| async move {
                let path = ["ojs", "v1", "workflows", &id];
                client.delete(&path).await.map(|answer| raw_part(answer, "workflow"))
            };
            chosen.each(session, WORKFLOWS, deed, act).await
        }
    }
}
