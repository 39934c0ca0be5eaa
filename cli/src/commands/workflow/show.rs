//! `turnstone workflow get`: a workflow with a row for each of its steps, jobs and callbacks.

use crate::client::Received;
use crate::commands::Session;
use crate::output::table::{self, Column, column, plain, time};
use crate::output::{Format, text};
use std::process::ExitCode;
use turnstone_api::answers::{StepBody, WorkflowBody};

/// A step with its place.
type PlacedStep = (String, StepBody);

const ROWS: &[Column<PlacedStep>] = &[
    column("STEP", |(place, _)| place.clone()),
    column("NAME", |(_, step)| plain(&step.id)),
    column("STATE", |(_, step)| plain(&step.state)),
    column("JOB STATE", |(_, step)| plain(&step.job_state)),
    column("TYPE", |(_, step)| plain(&step.job_type)),
    column("JOB", |(_, step)| plain(&step.job_id)),
];

/// Returns each step of a chain or a graph, or each job of a group or a batch. The callbacks follow.
fn rows(workflow: &WorkflowBody) -> Vec<PlacedStep> {
    let members = workflow.steps.iter().chain(&workflow.jobs).flatten();
    let members = members.zip(1..).map(|(member, place): (_, u64)| (place.to_string(), member.clone()));
    let callbacks =
        workflow.callbacks.iter().flatten().map(|(name, callback)| (name.clone(), callback.clone()));
    members.chain(callbacks).collect()
}

/// Prints it.
///
/// # Errors
/// The request fails, or there is no such workflow.
pub async fn run(id: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let workflow: Received<WorkflowBody> =
        client.member(&["ojs", "v1", "workflows", id], &[], "workflow").await?;
    match output.format {
        Format::Json => output.json(&workflow)?,
        Format::Ids => output.line(&text::line(id))?,
        Format::Table => {
            let WorkflowBody { kind, state, name, created_at, .. } = &*workflow;
            let line = format!("{kind} {}: {state} (started {})", plain(name), time(created_at));
            output.line(&text::line(&line))?;
            output.line(&table::of(&rows(&workflow), ROWS, output.tty))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
