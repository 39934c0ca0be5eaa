//! Rows in responses: the domain's own fields, with times in RFC 3339.

use crate::request::Tenant;
use serde::Serialize;
use serde_json::{Value, json};
use turnstone_domain::Timestamp;
use turnstone_domain::event::Event;
use turnstone_domain::guardrail_check::GuardrailCheck;
use turnstone_domain::message::StoredMessage;
use turnstone_domain::review::{Review, ReviewState};
use turnstone_domain::session_state::StateEntry;
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};
use turnstone_store::{CheckpointRow, WorkerBeat};

/// Serialises a row and writes the named times, which are milliseconds in the domain, in RFC 3339.
fn with_times(row: &impl Serialize, times: &[&str]) -> Value {
    let mut value = serde_json::to_value(row).unwrap_or_default();
    times.iter().for_each(|name| time_of(&mut value, name));
    value
}

/// Writes the named time of a value in RFC 3339.
pub(crate) fn time_of(value: &mut Value, name: &str) {
    if let Some(time) = value.get_mut(name)
        && let Some(ms) = time.as_i64()
    {
        *time = Timestamp(ms).to_rfc3339().into();
    }
}

/// Returns a key of an agent's state.
pub(crate) fn state_entry(entry: &StateEntry) -> Value {
    with_times(entry, &["updated_at", "expires_at"])
}

pub(crate) fn event(event: &Event) -> Value {
    with_times(event, &["at"])
}

pub(crate) fn message(message: &StoredMessage) -> Value {
    let mut value = with_times(message, &["created_at"]);
    if let Some(metadata) = &message.message.metadata {
        value["metadata"] = with_times(metadata, &["normalized_at"]);
    }
    value
}

/// Returns a checkpoint. Its body may contain content that a restriction withholds, so it is shown only on request.
pub(crate) fn checkpoint(row: &CheckpointRow, with_body: bool) -> Value {
    let mut value = with_times(row, &["at"]);
    if let (Some(fields), false) = (value.as_object_mut(), with_body) {
        fields.shift_remove("body");
    }
    value
}

pub(crate) fn review(review: &Review) -> Value {
    let mut value = with_times(review, &["created_at", "deadline_at", "decided_at", "remind_at"]);
    for vote in value["votes"].as_array_mut().into_iter().flatten() {
        time_of(vote, "at");
    }
    if let Some(fields) = value.as_object_mut() {
        fields.shift_remove("plan");
    }
    if review.state == ReviewState::Expired && review.reason.is_none() {
        let is_late = review.deadline_at.zip(review.decided_at).is_some_and(|(until, at)| until <= at);
        value["reason"] = if is_late { "no reviewer answered in time" } else { "its job ended first" }.into();
    }
    let tally = review.tally();
    value["members"] = json!(review.members());
    value["quorum"] = json!({"needed": tally.needed, "of": tally.of, "approvals": tally.approvals,
                             "rejections": tally.rejections});
    value["escalates_to"] = json!(review.next_step().map(|step| &step.name));
    value
}

/// Returns the question to a guardrail and its answer; a tenant receives the verdict alone (OAS-43).
pub(crate) fn guardrail_check(check: &GuardrailCheck, tenant: &Tenant) -> Value {
    let mut value = with_times(check, &["at"]);
    if let (Some(fields), Some(_)) = (value.as_object_mut(), tenant.name()) {
        fields.retain(|name, _| !matches!(name.as_str(), "input" | "output" | "error" | "denial"));
    }
    value
}

/// Returns a call; an output that is withheld is left out (OAS-24, OAS-35).
pub(crate) fn tool_call(call: &ToolCall) -> Value {
    let mut value = with_times(call, &["created_at", "started_at", "completed_at"]);
    if let Some(outcome) = &call.outcome {
        value["outcome"] = outcome.shown();
    }
    if call.withheld && matches!(call.outcome, Some(ToolOutcome::Success { .. })) {
        value["outcome"] = json!({"status": "success"});
    }
    value
}

/// Returns a worker, with `alive` for a recent heartbeat.
pub(crate) fn worker(worker: &WorkerBeat, now: Timestamp) -> Value {
    let mut value = with_times(worker, &["started_at", "seen_at"]);
    value["alive"] = worker.is_alive(now).into();
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::tool_call::ToolCallState;

    #[test]
    fn a_withheld_output_is_not_shown_and_times_are_text() {
        let mut call = ToolCall {
            call_id: "c".into(),
            turn: 1,
            position: 0,
            name: "search".into(),
            input: json!({}),
            idempotent: true,
            sends: 1,
            state: ToolCallState::Settled,
            outcome: Some(ToolOutcome::Success { output: json!("secret") }),
            withheld: false,
            duration_ms: Some(3),
            created_at: Timestamp(0),
            review_id: None,
            again: false,
            provider: None,
            retries: 0,
            tried: Vec::new(),
            handled: None,
            started_at: None,
            completed_at: None,
            stub_of: None,
        };
        let shown = tool_call(&call);
        assert_eq!(
            (&shown["outcome"]["output"], &shown["created_at"]),
            (&json!("secret"), &json!("1970-01-01T00:00:00.000Z"))
        );
        call.withheld = true;
        assert!(!tool_call(&call).to_string().contains("secret"));
    }
}
