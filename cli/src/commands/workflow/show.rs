//! `turnstone workflow get`: a workflow with a row for each of its steps, jobs and callbacks.

use crate::client::unwrapped;
use crate::commands::Session;
use crate::output::table::{self, Column, column, plain, time};
use crate::output::{Format, text};
use serde_json::Value;
use std::process::ExitCode;

/// The field of a row's place while the table is made.
const PLACE: &str = "place";

const ROWS: &[Column] = &[
    column("STEP", |row| plain(&row[PLACE])),
    column("NAME", |row| plain(&row["id"])),
    column("STATE", |row| plain(&row["state"])),
    column("JOB STATE", |row| plain(&row["job_state"])),
    column("TYPE", |row| plain(&row["type"])),
    column("JOB", |row| plain(&row["job_id"])),
];

/// Returns a row for each step of a chain or a graph, or each job of a group or a batch. A row for each callback
/// follows.
fn rows(workflow: &Value) -> Vec<Value> {
    let members = ["steps", "jobs"].into_iter().filter_map(|unit| workflow[unit].as_array()).flatten();
    let members = members.zip(1..).map(|(member, place): (&Value, u64)| (place.into(), member));
    let callbacks = workflow["callbacks"].as_object().into_iter().flatten();
    let callbacks = callbacks.map(|(name, callback)| (name.as_str().into(), callback));
    let placed = |(place, row): (Value, &Value)| {
        let mut row = row.clone();
        row[PLACE] = place;
        row
    };
    members.chain(callbacks).map(placed).collect()
}

/// Prints it.
///
/// # Errors
/// The request fails, or there is no such workflow.
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
            output.line(&table::of(&rows(&workflow), ROWS, output.tty))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
