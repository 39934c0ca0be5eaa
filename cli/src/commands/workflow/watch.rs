//! `turnstone workflow watch`: the progress of a workflow.

use crate::client::{Client, unwrapped};
use crate::commands::Session;
use crate::commands::progress::{Line, PAUSE, Rate};
use crate::commands::since;
use crate::failure::Exit;
use crate::output::table::plain;
use crate::output::{Format, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::ExitCode;
use turnstone_domain::{Clock as _, JobState, SystemClock, Timestamp};

/// Follows a workflow until it ends. Ctrl-C ends the watching, not the workflow.
///
/// # Errors
/// There is no such workflow, or the request fails.
pub async fn run(id: &str, client: &Client, session: &Session) -> anyhow::Result<ExitCode> {
    let output = session.output;
    let path = ["ojs", "v1", "workflows", id];
    let (mut line, mut rate) = (Line::new(output), Rate::begin());
    let mut workflow = unwrapped(client.get(&path, &[]).await?, "workflow");
    while !is_over(&workflow) {
        line.show(&words(&workflow, &mut rate), &workflow)?;
        tokio::time::sleep(PAUSE).await;
        match client.get(&path, &[]).await {
            Ok(next) => workflow = unwrapped(next, "workflow"),
            // A server that restarts is tried again.
            Err(failure) if failure.is_passing() => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    line.end(&words(&workflow, &mut rate), &workflow)?;
    if output.format == Format::Ids {
        output.line(&text::line(id))?;
    }
    Ok(if workflow["state"] == "completed" { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

fn is_over(workflow: &Value) -> bool {
    ["completed", "failed", "cancelled"].iter().any(|state| workflow["state"] == *state)
}

/// Returns the progress in one line.
fn words(workflow: &Value, rate: &mut Rate) -> String {
    let members: Vec<&Value> =
        ["steps", "jobs"].iter().filter_map(|unit| workflow[*unit].as_array()).flatten().collect();
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    for member in &members {
        let state = if member["job_state"].is_null() { &member["state"] } else { &member["job_state"] };
        *states.entry(plain(state)).or_default() += 1;
    }
    let count = |state: &str| states.get(state).copied().unwrap_or_default();
    let ended: u64 =
        JobState::ALL.iter().filter(|state| state.is_terminal()).map(|state| count(state.as_str())).sum();
    let mut parts = vec![format!("{} of {} done", count("completed"), members.len())];
    for (state, words) in states.iter().filter(|(state, _)| *state != "completed") {
        let state = if state == "discarded" { "failed" } else { state };
        parts.push(format!("{words} {state}"));
    }
    let total = u64::try_from(members.len()).unwrap_or(u64::MAX);
    let began = Timestamp::parse_rfc3339(&plain(&workflow["created_at"]));
    let elapsed = began.map(|began| SystemClock.now().since(began));
    if is_over(workflow) {
        parts.push(plain(&workflow["state"]));
    } else if let Some(ms) = rate.left(ended, total.saturating_sub(ended), elapsed) {
        parts.push(format!("about {} left", since::span(ms)));
    }
    format!("workflow {}: {}", plain(&workflow["id"]), parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn progress_is_one_line() {
        let workflow = json!({"id": "w", "state": "failed", "steps": [
            {"state": "completed", "job_state": "completed"}, {"state": "failed", "job_state": "discarded"},
            {"state": "cancelled", "job_state": null}]});
        assert_eq!(
            words(&workflow, &mut Rate::begin()),
            "workflow w: 1 of 3 done, 1 cancelled, 1 failed, failed"
        );
    }
}
