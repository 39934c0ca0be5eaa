//! The caller's view of an engagement: never `recent` or `history`, only the values that the agent exposes.

use super::awaited_budget::AwaitedBudget;
use super::fork::ForkedFrom;
use crate::budgets::rows::{Money, Tokens};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use turnstone_domain::agent::delegation::DelegationState;
use turnstone_domain::budget::Budget;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::error::ProviderWait;
use turnstone_domain::question::{AskedUser, ClientCall};
use turnstone_domain::review::{Review, ReviewKind, tool_of};
use turnstone_domain::{Job, JobError, JobState, Timestamp};
use turnstone_store::{DelegationLink, DelegationLinks};
use utoipa::ToSchema;

/// An engagement as its caller sees it.
#[derive(Serialize, Deserialize, ToSchema)]
#[schema(as = EngagementState)]
pub struct State {
    /// Its id.
    pub engagement_id: String,
    /// Its agent.
    pub agent: String,
    /// Its user.
    pub user: StateUser,
    /// queued, running, waiting-for-review, waiting-for-input, budget_reached, completed, failed or cancelled.
    pub status: String,
    /// When it began.
    pub started_at: String,
    updated_at: String,
    /// The reason why it waits.
    pub awaiting: Option<Awaiting>,
    /// The answer as `text`, and beside it the values that the agent exposes. While the agent waits for its
    /// user, the exposed values alone.
    pub results: Option<Value>,
    /// Why a value that the agent exposes is null.
    warnings: Vec<StateWarning>,
    /// Why its latest attempt failed.
    pub error: Option<StateError>,
    /// The latest job.
    pub job_id: String,
    /// Turns that are complete.
    pub turns: i64,
    /// The node of an Agent Spec flow that runs or waits, after the nodes around it: `each > ask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Of the whole tree: all engagements in it share one budget.
    pub tokens: Tokens,
    /// Of the engagement and its delegates, in the currency of the price table.
    cost: Money,
    /// The number of agents above it.
    depth: i64,
    /// Its origin, if it is a fork.
    pub forked_from: Option<ForkedFrom>,
    /// The engagement that it works for.
    pub parent: Option<StateParent>,
    /// Its delegates, direct and indirect, parents before their children; at most 1000.
    pub children: Vec<StateChild>,
    /// It and those below it.
    pub tree: StateTree,
}

/// The engagement that another one works for.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct StateParent {
    /// Its id.
    pub engagement_id: String,
    job_id: String,
}

/// An engagement that works for another.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct StateChild {
    /// Its id.
    pub engagement_id: String,
    /// Its job.
    pub job_id: String,
    /// Its agent.
    pub agent: String,
    /// The job that it works for.
    pub parent_job_id: String,
    call_id: Option<String>,
    /// supervisor, parallel or handoff.
    pub mode: String,
    /// open, success, error or timeout.
    pub status: String,
    /// The state of its job.
    state: String,
    depth: i64,
    /// Turns that are complete.
    pub turns: i64,
    /// Tokens that it used.
    pub tokens_used: i64,
}

/// An engagement and those below it, together.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct StateTree {
    /// How many they are.
    pub engagements: usize,
    /// Tokens that they used.
    pub tokens_used: i64,
}

/// The user of an engagement.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct StateUser {
    /// Its id.
    pub id: String,
    email: Option<String>,
}

/// Why a value is missing.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct StateWarning {
    pub(super) key: String,
    pub(super) message: String,
}

/// The reason why an engagement waits. The reviewer's view is in the review: it is not for the caller.
#[derive(Default, Serialize, Deserialize, ToSchema)]
pub struct Awaiting {
    /// `review`, `input`, `budget`, or `tool`: the client executes a tool and answers with its result. `provider`: the next
    /// attempt of the job, because its model's provider could not be reached.
    kind: String,
    /// Of a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review_id: Option<String>,
    /// Of a review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    /// Of an input: the call that asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Of an input: the keys that an answer must have, and the meaning of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_keys: Option<Value>,
    /// Of a tool: its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// Of a tool: its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Value>,
    /// Of a budget: the budget, and what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<AwaitedBudget>,
    /// Of a provider: its name, the problem, its address, the attempts so far and the time of the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Map<String, Value>>)]
    pub provider: Option<ProviderWait>,
    /// The question, or the reason, in a sentence.
    pub prompt: String,
}

/// Why the latest attempt failed.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct StateError {
    /// Its stable code.
    pub code: String,
    /// In words.
    pub message: String,
    /// The type of OJS, and facts for programs.
    #[serde(flatten)]
    #[schema(ignore)]
    facts: Map<String, Value>,
}

impl State {
    /// Returns the state of an engagement. `answer` and what it says about its flow and its origin are added to it.
    pub(super) fn of(
        engagement: Engagement,
        job: &Job,
        budget: &Budget,
        review: Option<&Review>,
        links: DelegationLinks,
        warnings: Vec<StateWarning>,
    ) -> Self {
        let waits = job.state == JobState::Pending && links.below.iter().any(|link| works_for(link, job));
        let own = job.agent.as_ref().map_or(0, |agent| agent.tokens_used);
        let tokens_used = links.below.iter().map(|link| link.tokens_used).sum::<i64>().saturating_add(own);
        let failed =
            job.errors.last().filter(|_| matches!(job.state, JobState::Retryable | JobState::Discarded));
        Self {
            engagement_id: engagement.id.0,
            agent: engagement.agent,
            user: StateUser { id: engagement.user.id, email: engagement.user.email },
            status: if waits && review.is_none() { "running" } else { status(job.state, review) }.to_owned(),
            started_at: engagement.started_at.to_rfc3339(),
            updated_at: last_known_change(job, review).to_rfc3339(),
            awaiting: review.map(Awaiting::review).or_else(|| ProviderWait::of(job).map(Awaiting::provider)),
            results: job.result.as_ref().map(|result| results(&result.parse().unwrap_or_default())),
            warnings,
            error: failed.map(|failed| StateError::from(&failed.error)),
            job_id: job.id.to_string(),
            turns: engagement.turns,
            node: None,
            tokens: Tokens::from(budget),
            cost: Money::from(&budget.money),
            depth: links.depth,
            forked_from: None,
            parent: links
                .parent
                .map(|(job, of)| StateParent { engagement_id: of.0, job_id: job.to_string() }),
            tree: StateTree { engagements: 1 + links.below.len(), tokens_used },
            children: links.below.into_iter().map(StateChild::from).collect(),
        }
    }
}

impl From<DelegationLink> for StateChild {
    fn from(link: DelegationLink) -> Self {
        Self {
            engagement_id: link.engagement_id.0,
            job_id: link.job_id.to_string(),
            agent: link.agent,
            parent_job_id: link.parent_job_id.to_string(),
            call_id: link.call_id.map(|id| id.0),
            mode: link.mode.as_str().to_owned(),
            status: link.status.as_str().to_owned(),
            state: link.state.as_str().to_owned(),
            depth: link.depth,
            turns: link.turns,
            tokens_used: link.tokens_used,
        }
    }
}

impl From<&JobError> for StateError {
    fn from(error: &JobError) -> Self {
        let mut facts = error.facts();
        facts.insert("type".to_owned(), error.error_type().into());
        Self { code: error.code().to_owned(), message: error.message.clone(), facts }
    }
}

impl Awaiting {
    fn review(review: &Review) -> Self {
        Self {
            kind: "review".to_owned(),
            review_id: Some(review.id.to_string()),
            reviewer: Some(review.reviewer.clone()),
            prompt: prompt(review),
            ..Self::default()
        }
    }

    pub(super) fn budget(budget: AwaitedBudget) -> Self {
        let prompt = budget.prompt();
        Self { kind: "budget".to_owned(), budget: Some(budget), prompt, ..Self::default() }
    }

    fn provider(wait: ProviderWait) -> Self {
        let prompt = wait.sentence(&wait.next_retry_at);
        Self { kind: wait.kind.clone(), prompt, provider: Some(wait), ..Self::default() }
    }

    /// Returns the question to the user, or the call that the client has to make: of a tool of a flow that the
    /// client executes.
    pub(super) fn input(requested: &AskedUser, input: Option<&Value>) -> Self {
        let call = input.and_then(|input| ClientCall::deserialize(input).ok());
        Self {
            kind: if call.is_some() { "tool" } else { "input" }.to_owned(),
            call_id: Some(requested.call_id.to_string()),
            request_keys: Some(requested.question.request_keys()),
            tool: call.as_ref().map(|call| call.tool.clone()),
            arguments: call.map(|call| call.arguments),
            prompt: requested.question.prompt(),
            ..Self::default()
        }
    }
}

/// Returns the question of a review, without the parts for its reviewer: arguments, outputs and the
/// Engagement object.
pub(crate) fn prompt(review: &Review) -> String {
    let about = match tool_of(&review.question) {
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
