//! `turnstone workflow list`: workflows, newest first.

use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use clap::Args;
use std::process::ExitCode;
use turnstone_api::answers::WorkflowBody;

const COLUMNS: &[Column<WorkflowBody>] = &[
    column("ID", |workflow| plain(&workflow.id)),
    column("TYPE", |workflow| plain(&workflow.kind)),
    column("NAME", |workflow| plain(&workflow.name)),
    column("STATE", |workflow| plain(&workflow.state)),
    column("DONE", done),
    column("STARTED", |workflow| time(&workflow.created_at)),
];

/// `turnstone workflow list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Only those in this state
    #[arg(long, value_parser = ["running", "completed", "failed", "cancelled"])]
    pub state: Option<String>,
    /// At most this many
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    pub limit: usize,
}

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(args: &ListArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let filters: Vec<(&str, String)> = args.state.iter().map(|state| ("state", state.clone())).collect();
    let client = session.client()?;
    let (workflows, _) =
        client.slices(super::WORKFLOWS.path, &filters, super::WORKFLOWS.list, args.limit).await?;
    session.output.list(&workflows, |workflow| &workflow.id, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns how many of its steps or jobs have succeeded.
fn done(workflow: &WorkflowBody) -> String {
    let steps = workflow.steps_completed.zip(workflow.steps_total);
    let counted = steps.or_else(|| workflow.jobs_completed.zip(workflow.jobs_total));
    counted.map(|(done, total)| format!("{done} of {total}")).unwrap_or_default()
}
