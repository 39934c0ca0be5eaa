//! An agent as reviewer (OAS-30, OAS-31): it is asked in an engagement of its own, with the whole Engagement object as its
//! input, and answers with a verdict. Anything that is no verdict confirms nothing.
//!
//! Its engagement is not part of the history of the one that it is asked about, counts in that one's depth and budget, and
//! the parked job goes on when it has ended.

use super::call::{self, Call};
use super::context;
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use crate::turn::trace;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::error::FailureKind;
use turnstone_domain::review::{ReviewKind, ReviewState};
use turnstone_domain::{
    AgentDefinition, CallId, EngagementId, EventName, JobError, JobId, NewChild, RawJson, Wait,
};

/// How an agent is named for sure.
const PREFIX: &str = "oagent://";

/// The agents that review calls of this one, by the word in its document; `None` for one that is not there.
pub type Reviewers = BTreeMap<String, Option<Arc<AgentDefinition>>>;

/// What a reviewer said: the state of the review, who said it, and why.
pub struct Said {
    /// Approved, or not.
    pub state: ReviewState,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: Option<String>,
}

/// The name that a reviewer has if it is an agent.
pub fn agent_name(reviewer: &str) -> &str {
    reviewer.strip_prefix(PREFIX).unwrap_or(reviewer)
}

/// The reviewers of an agent's document that are agents.
pub fn among(agent: &AgentDefinition, found: &BTreeMap<String, Arc<AgentDefinition>>) -> Reviewers {
    let words = agent.capabilities.iter().flat_map(|capability| {
        [&capability.input_restriction, &capability.output_restriction]
            .into_iter()
            .filter_map(|restriction| restriction.require_review.as_deref())
    });
    let known = words.map(|word| (word, found.get(agent_name(word)).cloned()));
    // A user may have any other name; an agent that is named for sure and is not there can confirm nothing.
    let agents = known.filter(|(word, agent)| agent.is_some() || word.starts_with(PREFIX));
    agents.map(|(word, agent)| (word.to_owned(), agent)).collect()
}

/// What the agent said about this call; asks it first.
///
/// # Errors
/// [`Stop::Park`] until it has answered, [`Stop::Fail`] when it may not be asked.
pub fn said(
    turn: &mut Turn,
    call: &Call,
    kind: ReviewKind,
    reviewer: &str,
    question: &Value,
) -> Result<Said, Stop> {
    let about = CallId(format!("{}/review/{}", call.asked.call_id, kind.as_str()));
    let asked = turn.delegations.iter().rev().find(|done| done.call_id == about).cloned();
    let Some(done) = asked else { return Err(ask(turn, call, kind, reviewer, about, question)) };
    let said = match done.state {
        DelegationState::Open => return Err(Stop::Park(Box::new(Wait::Children(Vec::new())))),
        DelegationState::Success => {
            let answer = done.result.as_ref().and_then(|result| result.parse().ok()).unwrap_or_default();
            let (approve, reason) = verdict(&answer);
            let state = if approve { ReviewState::Approved } else { ReviewState::Rejected };
            Said { state, by: reviewer.to_owned(), reason }
        }
        DelegationState::Timeout => {
            Said { state: ReviewState::Expired, by: reviewer.to_owned(), reason: None }
        }
        DelegationState::Error => {
            let reason = "it failed, and without a verdict nothing is confirmed".to_owned();
            Said { state: ReviewState::Rejected, by: reviewer.to_owned(), reason: Some(reason) }
        }
    };
    let data =
        json!({"review_id": done.job, "state": said.state, "decided_by": said.by, "reason": said.reason});
    turn.event(EventName::ReviewDecided, data);
    Ok(said)
}

fn ask(
    turn: &mut Turn,
    call: &Call,
    kind: ReviewKind,
    reviewer: &str,
    about: CallId,
    question: &Value,
) -> Stop {
    let Some(agent) = turn.reviewers.get(reviewer).cloned().flatten() else {
        let message = format!("the reviewer `{reviewer}` of `{}` is not on this server", call.asked.name);
        return JobError::new(FailureKind::Policy, message).with("oas_rule", "OAS-31").into();
    };
    let most = i64::from(turn.agent.limits.max_delegation_depth);
    if turn.depth + 1 > most {
        let message = format!(
            "the reviewer `{reviewer}` was not asked: it would be {} deep, and this agent may delegate to a depth of {most}",
            turn.depth + 1
        );
        let error = JobError::new(FailureKind::DelegationDepth, message).with("oas_rule", "OAS-32");
        return JobError { retryable: false, ..error }.into();
    }
    let span = trace::handoff(&agent.name, DelegationMode::Supervisor.as_str());
    let mut agent = (*agent).clone();
    agent.limits.max_delegation_depth =
        agent.limits.max_delegation_depth.min(turn.agent.limits.max_delegation_depth);
    let child = NewChild {
        job: JobId(turn.deps.ids.next()),
        engagement: EngagementId(turn.deps.ids.next()),
        agent: Box::new(agent),
        call_id: about,
        turn: turn.position.turn,
        mode: DelegationMode::Supervisor,
        args: RawJson::of(&json!([input(call, kind, question)])),
        meta: context::meta(turn, call, &span),
        timeout_ms: None,
    };
    let data = json!({"review_id": child.job, "kind": kind, "reviewer": reviewer, "name": call.asked.name});
    turn.event(EventName::ReviewOpened, data);
    Stop::Park(Box::new(Wait::Children(vec![child])))
}

/// What the reviewer is asked.
fn input(call: &Call, kind: ReviewKind, question: &Value) -> String {
    let what = match kind {
        ReviewKind::Output => "may use the result of its call of",
        _ => "may call",
    };
    format!(
        "You review another agent. Decide whether it {what} `{}`. Answer with one JSON object and nothing else: \
         {{\"approve\": true or false, \"reason\": \"one sentence\"}}.\n\n{question}",
        call.asked.name
    )
}

/// Whether an answer is a yes, and its reason: `{"approve": …}`, or a text that begins with APPROVE (OAS-A9).
fn verdict(answer: &Value) -> (bool, Option<String>) {
    let text = match answer {
        Value::Object(fields) if fields.contains_key("approve") => {
            return (
                fields["approve"] == true,
                fields.get("reason").and_then(Value::as_str).map(str::to_owned),
            );
        }
        Value::Object(fields) => fields.get("text").and_then(Value::as_str),
        other => other.as_str(),
    };
    let Some(text) = text.map(str::trim) else { return (false, None) };
    let inner = text.strip_prefix("```json").or_else(|| text.strip_prefix("```")).unwrap_or(text);
    let inner = inner.strip_suffix("```").unwrap_or(inner);
    if let Ok(fields @ Value::Object(_)) = serde_json::from_str(inner) {
        return match fields.get("approve") {
            Some(_) => verdict(&fields),
            None => (false, None),
        };
    }
    let (first, rest) = text.split_once(|c: char| !c.is_alphanumeric()).unwrap_or((text, ""));
    let rest = rest.trim_matches(|c: char| c.is_whitespace() || ":.,-".contains(c));
    (first == "APPROVE", Some(rest.to_owned()).filter(|rest| !rest.is_empty()))
}

/// Journals the call that is asked about, so that it is known when the reviewer has answered.
pub fn plan(turn: &mut Turn, call: &Call, idempotent: bool) {
    if call.journalled.is_none() {
        let intent = call::intend(turn, call, idempotent, false);
        turn.pending().tool_calls.push(intent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAS-32: only a clear yes confirms.
    #[test]
    fn only_a_clear_yes_confirms() {
        for (answer, approves) in [
            (json!({"approve": true}), true),
            (json!("{\"approve\": true, \"reason\": \"cheap\"}"), true),
            (json!("```json\n{\"approve\": true}\n```"), true),
            (json!({"text": "{\"approve\": true}", "shown": 1}), true),
            (json!("APPROVE: it is cheap"), true),
            (json!({"approve": "true"}), false),
            (json!({"approve": false}), false),
            (json!("{\"approve\": 1}"), false),
            (json!("REJECT"), false),
            (json!("approved, I think"), false),
            (json!("I APPROVE"), false),
            (json!("{\"ok\": true}"), false),
            (json!(true), false),
            (json!(""), false),
        ] {
            assert_eq!(verdict(&answer).0, approves, "{answer}");
        }
        assert_eq!(verdict(&json!("APPROVE: it is cheap")).1.as_deref(), Some("it is cheap"));
        assert_eq!(verdict(&json!("{\"approve\": false, \"reason\": \"dear\"}")).1.as_deref(), Some("dear"));
    }
}
