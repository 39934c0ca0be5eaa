//! The caller's view of an engagement: never `recent` or `history`, only the values that the agent exposes.

use serde_json::{Value, json};
use turnstone_domain::agent::delegation::DelegationState;
use turnstone_domain::budget::Budget;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::question::AskedUser;
use turnstone_domain::review::{Review, ReviewKind};
use turnstone_domain::{Job, JobState, Timestamp};
use turnstone_store::{DelegationLink, DelegationLinks};
use utoipa::ToSchema;

/// An engagement as its caller sees it.
#[derive(ToSchema)]
#[schema(as = EngagementState)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct State {
    engagement_id: String,
    agent: String,
    user: StateUser,
    /// queued, running, waiting-for-review, waiting-for-input, completed, failed or cancelled.
    status: String,
    started_at: String,
    updated_at: String,
    awaiting: Option<Awaiting>,
    /// The answer as `text`, and beside it the values that the agent exposes. While the agent waits for its
    /// user, the exposed values alone.
    results: Option<Value>,
    /// Why a value that the agent exposes is null.
    warnings: Vec<StateWarning>,
    error: Option<StateError>,
    /// The latest job.
    job_id: String,
    turns: i64,
    /// The node of an Agent Spec flow that runs or waits, after the nodes around it: `each > ask`.
    node: Option<String>,
    /// Of the whole tree: all engagements in it share one budget.
    tokens: StateTokens,
    /// Of the engagement and its delegates, in the currency of the price table.
    cost: crate::budgets::rows::Money,
    /// The number of agents above it.
    depth: i64,
    /// Its origin, if it is a fork.
    forked_from: Option<super::fork::ForkedFrom>,
    /// The engagement that it works for.
    parent: Option<StateParent>,
    /// Its delegates, direct and indirect, parents before their children; at most 1000.
    children: Vec<StateChild>,
    tree: StateTree,
}

/// The engagement that another one works for.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct StateParent {
    engagement_id: String,
    job_id: String,
}

/// An engagement that works for another.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct StateChild {
    engagement_id: String,
    job_id: String,
    agent: String,
    parent_job_id: String,
    call_id: Option<String>,
    /// supervisor, parallel or handoff.
    mode: String,
    /// open, success, error or timeout.
    status: String,
    /// The state of its job.
    state: String,
    depth: i64,
    turns: i64,
    tokens_used: i64,
}

/// An engagement and those below it, together.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct StateTree {
    engagements: usize,
    tokens_used: i64,
}

/// The user of an engagement.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct StateUser {
    id: String,
    email: Option<String>,
}

/// Why a value is missing.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct StateWarning {
    key: String,
    message: String,
}

/// The reason why an engagement waits. The reviewer's view is in the review: it is not for the caller.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct Awaiting {
    /// `review`, `input`, or `tool`: the client executes a tool and answers with its result.
    kind: String,
    /// Of a review.
    review_id: Option<String>,
    /// Of a review.
    reviewer: Option<String>,
    /// Of an input: the call that asks.
    call_id: Option<String>,
    /// Of an input: the keys that an answer must have, and the meaning of each.
    request_keys: Option<Value>,
    /// Of a tool: its name.
    tool: Option<String>,
    /// Of a tool: its arguments.
    arguments: Option<Value>,
    /// The question, in a sentence.
    prompt: String,
}

/// Why the latest attempt failed.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct StateError {
    code: String,
    message: String,
}

/// The spending of an engagement, and its limit.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct StateTokens {
    used: i64,
    reserved: i64,
    limit: Option<i64>,
    left: Option<i64>,
}

pub(crate) fn of(
    engagement: &Engagement,
    job: &Job,
    budget: &Budget,
    review: Option<&Review>,
    links: &DelegationLinks,
    warnings: &[Value],
) -> Value {
    let waits = job.state == JobState::Pending && links.below.iter().any(|link| works_for(link, job));
    let own = job.agent.as_ref().map_or(0, |agent| agent.tokens_used);
    let tokens_used = links.below.iter().map(|link| link.tokens_used).sum::<i64>().saturating_add(own);
    let failed = job.errors.last().filter(|_| matches!(job.state, JobState::Retryable | JobState::Discarded));
    json!({
        "engagement_id": engagement.id,
        "agent": engagement.agent,
        "user": engagement.user,
        "status": if waits && review.is_none() { "running" } else { status(job.state, review) },
        "started_at": engagement.started_at.to_rfc3339(),
        "updated_at": last_known_change(job, review).to_rfc3339(),
        "awaiting": review.map(|review| json!({
            "kind": "review",
            "review_id": review.id,
            "reviewer": review.reviewer,
            "prompt": prompt(review),
        })),
        "results": job.result.as_ref().map(|result| results(&result.parse().unwrap_or_default())),
        "warnings": warnings,
        "error": failed.map(|failed| failed.error.event_data()),
        "job_id": job.id,
        "turns": engagement.turns,
        "tokens": {
            "used": budget.settled,
            "reserved": budget.reserved,
            "limit": budget.limit,
            "left": budget.left(),
        },
        "depth": links.depth,
        "parent": links.parent.as_ref().map(|(job, engagement)| json!({"engagement_id": engagement, "job_id": job})),
        "children": links.below,
        "tree": {"engagements": 1 + links.below.len(), "tokens_used": tokens_used},
        "cost": crate::budgets::rows::purse(&budget.money),
    })
}

/// Returns the question to the user, or the call that the client has to make: of a tool of a flow that the
/// client executes.
pub(crate) fn awaiting_input(requested: &AskedUser, input: Option<&Value>) -> Value {
    let mut shown = json!({"kind": "input", "call_id": requested.call_id, "prompt": requested.question.prompt(),
                           "request_keys": requested.question.request_keys()});
    if let Some(input) = input.filter(|input| input["tool"].is_string()) {
        shown["kind"] = "tool".into();
        shown["tool"] = input["tool"].clone();
        shown["arguments"] = input["arguments"].clone();
    }
    shown
}

/// Returns the question of a review, without the parts for its reviewer: arguments, outputs and the
/// Engagement object.
pub(crate) fn prompt(review: &Review) -> String {
    let about = match review.question.get("name").and_then(Value::as_str) {
        Some(name) => format!("the call of `{name}`"),
        None => "the engagement".to_owned(),
    };
    match review.kind {
        ReviewKind::Input => format!("May {about} be made?"),
        ReviewKind::Output => format!("May the result of {about} be used?"),
        ReviewKind::UnknownOutcome => format!("The outcome of {about} is unknown. May it be made once more?"),
        ReviewKind::Escalation => format!("There was an error in {about}. May it continue?"),
        ReviewKind::Confirmation => "May the next turn begin?".to_owned(),
    }
}

/// Returns true if a delegate works for a call of this job.
fn works_for(link: &DelegationLink, job: &Job) -> bool {
    link.parent_job_id == job.id && link.call_id.is_some() && link.status == DelegationState::Open
}

fn status(state: JobState, review: Option<&Review>) -> &'static str {
    match state {
        JobState::Scheduled | JobState::Available | JobState::Retryable => "queued",
        JobState::Pending if review.is_some() => "waiting-for-review",
        JobState::Pending => "waiting-for-input",
        JobState::Active => "running",
        JobState::Completed => "completed",
        JobState::Discarded => "failed",
        JobState::Cancelled => "cancelled",
    }
}

fn last_known_change(job: &Job, review: Option<&Review>) -> Timestamp {
    let failed_at = job.errors.last().map(|failed| failed.at);
    let times = [
        Some(job.created_at),
        job.started_at,
        failed_at,
        review.map(|review| review.created_at),
        job.ended_at,
    ];
    times.into_iter().flatten().max().unwrap_or(job.created_at)
}

/// Returns the answer as `text`, and beside it the values that the agent exposes (OAS-47). A demanded JSON
/// answer is in `output` too.
pub(crate) fn results(result: &Value) -> Value {
    match result {
        Value::String(text) => json!({"text": text}),
        Value::Object(fields) if fields.get("text").is_some_and(Value::is_string) => result.clone(),
        other => json!({"text": other.to_string(), "output": other}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_always_have_a_text() {
        assert_eq!(results(&json!("hi")), json!({"text": "hi"}));
        assert_eq!(results(&json!({"text": "hi", "mood": 1})), json!({"text": "hi", "mood": 1}));
        assert_eq!(
            results(&json!({"summary": 1})),
            json!({"text": "{\"summary\":1}", "output": {"summary": 1}})
        );
    }

    #[test]
    fn every_state_has_a_word_of_the_closed_set() {
        let words = JobState::ALL.map(|state| status(state, None));
        assert_eq!(
            words,
            [
                "queued",
                "queued",
                "waiting-for-input",
                "running",
                "completed",
                "queued",
                "cancelled",
                "failed"
            ]
        );
    }
}
