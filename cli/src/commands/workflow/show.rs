//! `turnstone workflow get`: a workflow with its steps.

use crate::client::unwrapped;
use crate::commands::Session;
use crate::output::table::{self, Column, column, plain, time};
use crate::output::{Format, text};
use serde_json::Value;
use std::process::ExitCode;

const STEPS: &[Column] = &[
    column("STEP", |step| plain(&step["step"])),
    column("NAME", |step| plain(&step["name"])),
    column("ROLE", |step| plain(&step["role"])),
    column("STATE", |step| plain(&step["state"])),
    column("TYPE", |step| plain(&step["type"])),
    column("JOB", |step| plain(&step["job_id"])),
];

/// A step with its place, where it has no other name.
fn numbered((at, step): (usize, &Value)) -> Value {
    let mut step = step.clone();
    if step["step"].is_null() {
        step["step"] = (at + 1).into();
    }
    step
}

/// Prints it.
///
/// # Errors
/// The server cannot be asked, or there is no such workflow.
pub async fn run(id: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let workflow = unwrapped(client.get(&["ojs", "v1", "workflows", id], &[]).await?, "workflow");
    match output.format {
        Format::Json => output.json(&workflow)?,
        Format::Ids => output.line(&text::line(id))?,
        Format::Table => {
            let (kind, state) = (plain(&workflow["type"]), plain(&workflow["state"]));
            let since = time(&workflow["created_at"]);
            output.line(&text::line(&format!(
                "{kind} {}: {state} (started {since})",
                plain(&workflow["name"])
            )))?;
            let steps = workflow["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
            let steps: Vec<Value> = steps.iter().enumerate().map(numbered).collect();
            output.line(&table::of(&steps, STEPS, output.tty))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
