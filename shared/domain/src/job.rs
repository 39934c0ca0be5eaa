//! A job: an OJS envelope and its state. The job of an agent carries one user input into an engagement; a plain job has no
//! engagement, and an OJS worker in any language runs it.
//!
//! [`NewJob`] is what a client asks for, and [`Job`] what the store has. [`Envelope`] is the part that belongs to the client.

use crate::engagement::NewEngagement;
use crate::retry::RetryPolicy;
use crate::turn_write::Position;
use crate::{EngagementId, JobError, JobId, JobState, RawJson, RawObject, Terms, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The members that belong to the client. They are kept as the JSON texts that the client sent, and are returned unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Envelope {
    /// OJS `args`: an array.
    pub args: RawJson,
    /// OJS `meta`.
    pub meta: RawObject,
    /// OJS `options` as sent.
    pub options: RawObject,
    /// Every other top-level member, `ext_agent_*` included, in the order of the request.
    pub extra: RawObject,
}

impl Default for Envelope {
    fn default() -> Self {
        let nothing = RawObject::new;
        Self { args: RawJson::empty_array(), meta: nothing(), options: nothing(), extra: nothing() }
    }
}

/// A job to be enqueued.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct NewJob {
    /// Its id. A workflow keeps its waiting jobs, so it is serialized in its unique form.
    #[serde(serialize_with = "JobId::serialize_whole")]
    pub id: JobId,
    /// Dot-separated, such as `agent.research`.
    pub job_type: String,
    /// Its queue.
    pub queue: String,
    /// −100 to 100; higher goes first.
    pub priority: i64,
    /// The earliest time at which it may run. If it is later than `created_at`, the job is `scheduled` until then.
    pub run_at: Timestamp,
    /// The time at which it becomes `discarded`, if it has not ended before.
    pub expires_at: Option<Timestamp>,
    /// The longest one attempt may take, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The retry policy: when and how often it is tried again.
    pub retry: RetryPolicy,
    /// The members that belong to the client.
    pub envelope: Envelope,
    /// For the job of an agent: the engagement that it begins.
    pub engagement: Option<NewEngagement>,
    /// The further terms: uniqueness, limits, tags, and the like.
    pub terms: Terms,
    /// The time of the request.
    pub created_at: Timestamp,
}

/// One failed attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// The number of the attempt, from 1.
    pub attempt: i64,
    /// The error with which it failed.
    pub error: JobError,
    /// The time at which it failed.
    pub at: Timestamp,
}

/// A job as stored.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Dot-separated, such as `agent.research`.
    pub job_type: String,
    /// Its queue.
    pub queue: String,
    /// The state.
    pub state: JobState,
    /// −100 to 100; higher goes first.
    pub priority: i64,
    /// The number of claims. It falls by one when a worker over HTTP gives the job back, and to 0 with a manual retry.
    pub attempt: i64,
    /// The number of failed attempts, which the retry policy counts.
    pub failures: i64,
    /// The time at which it was accepted.
    pub created_at: Timestamp,
    /// The earliest time at which it may run.
    pub run_at: Timestamp,
    /// The time of its first claim.
    pub started_at: Option<Timestamp>,
    /// The time at which it reached a terminal state.
    pub ended_at: Option<Timestamp>,
    /// The time at which it becomes `discarded`, if it has not ended before.
    pub expires_at: Option<Timestamp>,
    /// The longest one attempt may take, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The worker that holds its lease.
    pub worker_id: Option<String>,
    /// The tenant on whose behalf it runs.
    pub tenant: Option<String>,
    /// The workflow of which it is a step.
    pub workflow_id: Option<String>,
    /// The results of the jobs before it in its workflow, as JSON texts: the result of the job directly before it is first.
    pub parent_results: Option<Vec<String>>,
    /// True if it is kept for a manual retry when it is discarded (OJS dead letter).
    pub dead_letter: bool,
    /// True if it is paused, so that no worker claims it until it is resumed.
    pub held: bool,
    /// The state that its worker saved (OJS durable execution).
    pub saved: Option<SavedState>,
    /// The retry policy: when and how often it is tried again.
    pub retry: RetryPolicy,
    /// The delay after the last failure, in milliseconds.
    pub retry_delay_ms: Option<i64>,
    /// The members that belong to the client.
    pub envelope: Envelope,
    /// The result, once it is `completed`.
    pub result: Option<RawJson>,
    /// Failed attempts, oldest first.
    pub errors: Vec<FailedAttempt>,
    /// For the job of an agent: the facts about its engagement.
    pub agent: Option<AgentJob>,
    /// While it is parked: the data of its event `job.parked`, which names the review, question, delegates or budget.
    pub waits_for: Option<Value>,
    /// In a list: the reason why stored members of this job cannot be decoded; they are left out.
    pub damaged: Option<String>,
}

/// The progress that a worker saved for the next attempt (OJS durable execution).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedState {
    /// The state as the JSON text that the worker sent.
    pub state: String,
    /// The number of the save, from 1.
    pub sequence: i64,
    /// The time of the save.
    pub at: Timestamp,
}

/// The agent side of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentJob {
    /// The engagement to which it belongs.
    pub engagement_id: EngagementId,
    /// The position of the job: the turn that runs next, and what earlier turns left.
    pub position: Position,
    /// The tokens that its model calls used (`ext_agent_tokens_used`).
    pub tokens_used: i64,
    /// The cost of its model calls and tool calls, in millionths of the currency of the price table.
    pub cost: i64,
    /// The outcomes of its calls (`ext_agent_tool_results`); `None` in lists, which do not read the tool journal.
    pub tool_results: Option<ToolResults>,
}

/// The settled calls of a job, without outputs that are withheld.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ToolResults {
    /// The calls in their order; if there are too many for one response, the newest of them.
    pub newest: Vec<Value>,
    /// True if no call is left out.
    pub whole: bool,
}
