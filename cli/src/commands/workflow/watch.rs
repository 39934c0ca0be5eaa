//! `turnstone workflow watch`: the progress of a workflow.

use crate::client::outage::Outage;
use crate::client::{Client, Received};
use crate::commands::Session;
use crate::commands::progress::{Line, PAUSE, Rate};
use crate::commands::since;
use crate::failure::Exit;
use crate::output::{Format, text};
use std::collections::BTreeMap;
use std::process::ExitCode;
use turnstone_api::answers::WorkflowBody;
use turnstone_domain::{Clock as _, JobState, SystemClock, Timestamp};

/// Follows a workflow until it ends. Ctrl-C ends the watching, not the workflow.
///
/// # Errors
/// There is no such workflow, or the request fails.
pub async fn run(id: &str, client: &Client, session: &Session) -> anyhow::Result<ExitCode> {
    let output = session.output;
    let path = ["ojs", "v1", "workflows", id];
    let (mut line, mut rate, mut outage) = (Line::new(output), Rate::begin(), Outage::default());
    let mut workflow: Received<WorkflowBody> = client.member(&path, &[], "workflow").await?;
    while !is_over(&workflow) {
        line.show(&words(&workflow, &mut rate), &workflow)?;
        tokio::time::sleep(PAUSE).await;
        match client.member(&path, &[], "workflow").await {
            Ok(next) => {
                outage.is_over(client);
                workflow = next;
            }
            // A server that restarts is tried again.
            Err(failure) if failure.is_passing() => outage.begins(client, &failure),
            Err(failure) => return Err(failure.into()),
        }
    }
    line.end(&words(&workflow, &mut rate), &workflow)?;
    if output.format == Format::Ids {
        output.line(&text::line(id))?;
    }
    Ok(if workflow.state == "completed" { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

fn is_over(workflow: &WorkflowBody) -> bool {
    ["completed", "failed", "cancelled"].contains(&workflow.state.as_str())
}

/// Returns the progress in one line.
fn words(workflow: &WorkflowBody, rate: &mut Rate) -> String {
    let members: Vec<_> = workflow.steps.iter().chain(&workflow.jobs).flatten().collect();
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    for member in &members {
        let state = member.job_state.as_ref().map_or_else(|| member.state.clone(), ToString::to_string);
        *states.entry(state).or_default() += 1;
    }
    let count = |state: &str| states.get(state).copied().unwrap_or_default();
    let ended: u64 =
        JobState::ALL.iter().filter(|state| state.is_terminal()).map(|state| count(state.as_str())).sum();
    let mut parts = vec![format!("{} of {} done", count("completed"), members.len())];
    for (state, words) in states.iter().filter(|(state, _)| *state != "completed") {
        parts.push(format!("{words} {}", if *state == "discarded" { "failed" } else { state.as_str() }));
    }
    let total = u64::try_from(members.len()).unwrap_or(u64::MAX);
    let began = Timestamp::parse_rfc3339(&workflow.created_at);
    let elapsed = began.map(|began| SystemClock.now().since(began));
    if is_over(workflow) {
        parts.push(workflow.state.clone());
    } else if let Some(ms) = rate.left(ended, total.saturating_sub(ended), elapsed) {
        parts.push(format!("about {} left", since::span(ms)));
    }
    format!("workflow {}: {}", workflow.id, parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn progress_is_one_line() {
        let step = |state: &str, job: Option<&str>| json!({"job_id": "j", "type": "a", "state": state, "job_state": job});
        let steps = [
            step("completed", Some("completed")),
            step("failed", Some("discarded")),
            step("cancelled", None),
        ];
        let workflow = json!({"id": "w", "type": "chain", "state": "failed", "failed": 1, "steps": steps,
                              "created_at": "2026-01-31T12:00:00Z"});
        let workflow = serde_json::from_value(workflow).unwrap();
        assert_eq!(
            words(&workflow, &mut Rate::begin()),
            "workflow w: 1 of 3 done, 1 cancelled, 1 failed, failed"
        );
    }
}
