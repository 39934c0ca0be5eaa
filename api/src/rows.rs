//! Rows that several endpoints return: the members of the domain's types, with times in RFC 3339.

use crate::request::Tenant;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use turnstone_domain::feed::FeedEvent;
use turnstone_domain::review::{self, ReviewKind, ReviewState};
use turnstone_domain::tool_call::{self, Handled, ToolOutcome, Tried};
use turnstone_domain::{Timestamp, guardrail_check};
use turnstone_ojs::{CloudEvent, OpenValue};
use utoipa::ToSchema;

/// Something that happened.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamEvent)]
pub(crate) struct Event {
    /// 1-based within its stream: the cursor of a reader.
    seq: i64,
    /// One of the names of docs/EVENTS.md.
    #[schema(example = "job.enqueued")]
    name: &'static str,
    job_id: String,
    /// For agent jobs.
    engagement_id: Option<String>,
    /// 0 outside of turns.
    turn: i64,
    /// The fields that the name promises.
    #[schema(value_type = Map<String, Value>)]
    data: Value,
    /// RFC 3339, UTC.
    at: String,
}

impl From<&FeedEvent> for Event {
    fn from(event: &FeedEvent) -> Self {
        Self {
            seq: event.cursor.seq,
            name: event.name.as_str(),
            job_id: event.job_id.as_ref().map(ToString::to_string).unwrap_or_default(),
            engagement_id: event.engagement_id.as_ref().map(ToString::to_string),
            turn: event.turn,
            data: event.data.clone(),
            at: event.at.to_rfc3339(),
        }
    }
}

/// An event in one of its forms.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum ShownEvent {
    /// Our own form, with the numbers of the stream.
    Own(Event),
    /// CloudEvents 1.0.
    Cloud(CloudEvent),
}

/// Events, oldest first.
#[derive(Serialize, ToSchema)]
#[schema(as = StreamPage)]
pub(crate) struct EventPage {
    #[schema(value_type = Vec<Event>)]
    pub(crate) events: Vec<ShownEvent>,
    /// The number of the last event: to be sent as `since` for the next page.
    pub(crate) cursor: i64,
    /// The same with the commit of that event. As `since` it is refused if another commit replaced the event.
    #[schema(example = "12.829")]
    pub(crate) cursor_id: String,
    pub(crate) has_more: bool,
}

/// A call of a tool.
#[derive(Serialize, ToSchema)]
pub(crate) struct ToolCall {
    call_id: String,
    turn: i64,
    position: i64,
    name: String,
    /// The arguments.
    input: Value,
    idempotent: bool,
    sends: i64,
    /// planned, sent or settled.
    state: &'static str,
    /// How it ended; an output that is withheld is left out.
    outcome: Option<Value>,
    withheld: bool,
    duration_ms: Option<i64>,
    created_at: String,
    review_id: Option<String>,
    /// True if a client requested that it be made again, and that has not happened yet.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    again: bool,
    /// The tool that is called instead of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    /// Tries beyond the first.
    retries: i64,
    /// The tries that failed before the last one: code, duration_ms, at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Option<Vec<Value>>)]
    tried: Vec<Tried>,
    /// The reaction of a handler to a failure: strategy, code, message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    handled: Option<Handled>,
    /// When its first request may have left.
    started_at: Option<String>,
    /// When its outcome was known.
    completed_at: Option<String>,
    /// The call whose recorded outcome it reuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    stub_of: Option<String>,
}

impl From<tool_call::ToolCall> for ToolCall {
    /// Returns a call; an output that is withheld is left out (OAS-24, OAS-35).
    fn from(call: tool_call::ToolCall) -> Self {
        let outcome = call.outcome.as_ref().map(|outcome| match outcome {
            ToolOutcome::Success { .. } if call.withheld => json!({"status": "success"}),
            outcome => outcome.shown(),
        });
        Self {
            call_id: call.call_id.0,
            turn: call.turn,
            position: call.position,
            name: call.name,
            input: call.input,
            idempotent: call.idempotent,
            sends: call.sends,
            state: call.state.as_str(),
            outcome,
            withheld: call.withheld,
            duration_ms: call.duration_ms,
            created_at: call.created_at.to_rfc3339(),
            review_id: call.review_id.map(|id| id.0),
            again: call.again,
            provider: call.provider,
            retries: call.retries,
            tried: call.tried,
            handled: call.handled,
            started_at: call.started_at.map(Timestamp::to_rfc3339),
            completed_at: call.completed_at.map(Timestamp::to_rfc3339),
            stub_of: call.stub_of.map(|id| id.0),
        }
    }
}

/// A question to a guardrail, and its answer.
#[derive(Serialize, ToSchema)]
pub(crate) struct GuardrailCheck {
    /// The id of the call, which is its idempotency key.
    call_id: String,
    turn: i64,
    /// input or output.
    side: &'static str,
    tool: String,
    passed: bool,
    /// The arguments of the call, with the text that was checked; absent for tenants.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Why the assertion does not hold for the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    denial: Option<String>,
    at: String,
}

impl GuardrailCheck {
    /// Returns the question to a guardrail and its answer; a tenant receives the verdict alone (OAS-43).
    pub(crate) fn of(check: guardrail_check::GuardrailCheck, tenant: &Tenant) -> Self {
        let call = tenant.name().is_none().then_some(check.asked);
        let (input, output, error, denial) = match call {
            Some(call) => (Some(call.input), call.output, call.error, call.denial),
            None => (None, None, None, None),
        };
        Self {
            call_id: check.call_id.0,
            turn: check.turn,
            side: check.side.as_str(),
            tool: check.tool,
            passed: check.passed,
            input,
            output,
            error,
            denial,
            at: check.at.to_rfc3339(),
        }
    }
}

/// A question to a user or an agent about a parked job.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct Review {
    /// Its id.
    pub id: String,
    /// The engagement.
    pub engagement_id: String,
    /// The parked job.
    pub job_id: String,
    /// The turn.
    pub turn: i64,
    call_id: String,
    /// input, output, `unknown_outcome`, escalation or confirmation.
    #[schema(value_type = String)]
    pub kind: OpenValue<ReviewKind>,
    /// The user, group or agent that answers.
    pub reviewer: String,
    /// The reviewer's view.
    pub question: Value,
    arguments_hash: String,
    /// open, approved, rejected or expired.
    pub state: String,
    /// The reviewer who answered.
    pub decided_by: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// When it was opened.
    pub created_at: String,
    /// The deadline, after which the review counts as rejected, or goes to the reviewers that `escalates_to` names.
    pub deadline_at: Option<String>,
    /// When it was answered.
    pub decided_at: Option<String>,
    /// The reviewers of the current step.
    pub members: Vec<String>,
    /// The votes: `needed`, `of`, `approvals` and `rejections`.
    pub quorum: Quorum,
    /// Every vote, where there are several reviewers: `by`, `approve`, `reason`, `at`, `step`.
    pub votes: Vec<Vote>,
    /// The number of escalations so far.
    step: usize,
    /// The group or user to which the review is escalated next.
    pub escalates_to: Option<String>,
    /// When they are reminded next, and how often they were.
    pub remind_at: Option<String>,
    /// How often they were reminded.
    pub reminders: i64,
    /// The engagement in which an agent reviews.
    pub asked_engagement_id: Option<String>,
    /// True if its rejection no longer counts, because the job was tried again; absent otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    spent: bool,
    /// The result of a call of unknown outcome, as the reviewer reported it; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// The votes that a review needs, and those that it has.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Quorum {
    /// The approvals that are needed.
    pub needed: usize,
    /// The reviewers.
    pub of: usize,
    /// The approvals so far.
    pub approvals: usize,
    /// The rejections so far.
    pub rejections: usize,
}

/// A reviewer's answer.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = ReviewVote)]
pub struct Vote {
    /// The reviewer.
    pub by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
    /// True for an approval.
    pub approve: bool,
    /// Why.
    pub reason: Option<String>,
    /// When it was given.
    pub at: String,
    step: usize,
    /// The result of a call of unknown outcome, as the reviewer reported it; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
}

impl From<review::Vote> for Vote {
    fn from(vote: review::Vote) -> Self {
        let review::Vote { by, principal, approve, reason, at, step, reported } = vote;
        Self { by, principal, approve, reason, at: at.to_rfc3339(), step, result: reported }
    }
}

impl From<review::Review> for Review {
    fn from(review: review::Review) -> Self {
        let is_late = review.deadline_at.zip(review.decided_at).is_some_and(|(until, at)| until <= at);
        let why = if is_late { "no reviewer answered in time" } else { "its job ended first" };
        let expired = || (review.state == ReviewState::Expired).then(|| why.to_owned());
        let tally = review.tally();
        Self {
            members: review.members().to_vec(),
            quorum: Quorum {
                needed: tally.needed,
                of: tally.of,
                approvals: tally.approvals,
                rejections: tally.rejections,
            },
            escalates_to: review.next_step().map(|step| step.name.clone()),
            reason: review.reason.clone().or_else(expired),
            id: review.id.0,
            engagement_id: review.engagement_id.0,
            job_id: review.job_id.to_string(),
            turn: review.turn,
            call_id: review.call_id.0,
            kind: review.kind.into(),
            reviewer: review.reviewer,
            question: review.question,
            arguments_hash: review.arguments_hash,
            state: review.state.as_str().to_owned(),
            decided_by: review.decided_by,
            created_at: review.created_at.to_rfc3339(),
            deadline_at: review.deadline_at.map(Timestamp::to_rfc3339),
            decided_at: review.decided_at.map(Timestamp::to_rfc3339),
            votes: review.votes.into_iter().map(Vote::from).collect(),
            step: review.step,
            remind_at: review.remind_at.map(Timestamp::to_rfc3339),
            reminders: review.reminders,
            asked_engagement_id: review.asked.map(|id| id.0),
            spent: review.spent,
            result: review.reported,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::tool_call::ToolCallState;

    #[test]
    fn a_withheld_output_is_not_shown_and_times_are_text() {
        let mut call = tool_call::ToolCall {
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
        let shown = ToolCall::from(call.clone());
        assert_eq!(
            (&shown.outcome.unwrap()["output"], &*shown.created_at),
            (&json!("secret"), "1970-01-01T00:00:00.000Z")
        );
        call.withheld = true;
        assert_eq!(ToolCall::from(call).outcome, Some(json!({"status": "success"})));
    }
}
