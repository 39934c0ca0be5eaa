//! A job: an OJS envelope and its state. For agents it carries one user input into an engagement.

use crate::engagement::NewEngagement;
use crate::retry::RetryPolicy;
use crate::turn_write::Position;
use crate::{EngagementId, JobError, JobId, JobState, RawJson, RawObject, Terms, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The client's members, which it gets back unchanged, as the texts that were sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Envelope {
    /// OJS `args`: an array.
    pub args: RawJson,
    /// OJS `meta`.
    pub meta: RawObject,
    /// OJS `options` as sent.
    pub options: RawObject,
    /// Every other top-level field, `ext_agent_*` included, in its order.
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
    /// Its id.
    pub id: JobId,
    /// Dot-separated, such as `agent.research`.
    pub job_type: String,
    /// Its queue.
    pub queue: String,
    /// −100 to 100; higher goes first.
    pub priority: i64,
    /// When it may run at the earliest; later than `created_at` makes it `scheduled`.
    pub run_at: Timestamp,
    /// When it ends `discarded` if it has not ended before.
    pub expires_at: Option<Timestamp>,
    /// The longest one attempt may be active, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// When and how often it is tried again.
    pub retry: RetryPolicy,
    /// The client's members.
    pub envelope: Envelope,
    /// For an agent job: the engagement it begins.
    pub engagement: Option<NewEngagement>,
    /// The further terms.
    pub terms: Terms,
    /// Now.
    pub created_at: Timestamp,
}

/// One failed attempt.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FailedAttempt {
    /// Which attempt it was, 1-based.
    pub attempt: i64,
    /// Why it failed.
    pub error: JobError,
    /// When it failed.
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
    /// How often it was claimed. Falls by one when a worker over HTTP gives it back, and to 0 with a manual retry.
    pub attempt: i64,
    /// How often it failed; this is what the retry policy counts.
    pub failures: i64,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it may run at the earliest.
    pub run_at: Timestamp,
    /// When it was first claimed.
    pub started_at: Option<Timestamp>,
    /// When it ended, in whichever terminal state.
    pub ended_at: Option<Timestamp>,
    /// When it ends `discarded` if it has not ended before.
    pub expires_at: Option<Timestamp>,
    /// The longest one attempt may be active, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The worker that holds the lease.
    pub worker_id: Option<String>,
    /// The tenant.
    pub tenant: Option<String>,
    /// The workflow it is a step of.
    pub workflow_id: Option<String>,
    /// The results of the predecessors in its workflow, the immediate one first: JSON texts.
    pub parent_results: Option<Vec<String>>,
    /// True if it is kept for a manual retry when it is discarded (OJS dead letter).
    pub dead_letter: bool,
    /// True if it is paused: no worker claims it.
    pub held: bool,
    /// The state that its worker saved (OJS durable execution).
    pub saved: Option<SavedState>,
    /// When and how often it is tried again.
    pub retry: RetryPolicy,
    /// The delay chosen after the last failure, in milliseconds.
    pub retry_delay_ms: Option<i64>,
    /// The client's members.
    pub envelope: Envelope,
    /// The result, once completed.
    pub result: Option<RawJson>,
    /// Failed attempts, oldest first.
    pub errors: Vec<FailedAttempt>,
    /// For an agent job: the facts about its engagement.
    pub agent: Option<AgentJob>,
    /// While it is parked: the data of the event that parked it.
    pub waits_for: Option<Value>,
    /// In a list: why this job cannot be read whole. Unreadable members are left out.
    pub damaged: Option<String>,
}

/// The progress that a worker saved for the next attempt (OJS durable execution).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedState {
    /// JSON text, as the worker sent it.
    pub state: String,
    /// 1 for the first save, then one more each time.
    pub sequence: i64,
    /// When it was saved.
    pub at: Timestamp,
}

/// The agent side of a job.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentJob {
    /// The engagement it belongs to.
    pub engagement_id: EngagementId,
    /// The job's position between turns.
    pub position: Position,
    /// `ext_agent_tokens_used`.
    pub tokens_used: i64,
    /// The cost of its model calls and tool calls, in millionths of the currency of the price table.
    pub cost: i64,
    /// `ext_agent_tool_results`; `None` in lists, which do not read the journal.
    pub tool_results: Option<ToolResults>,
}

/// Settled calls of a job, withheld outputs left out.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ToolResults {
    /// In order; where there are too many to be shown at once, the newest.
    pub newest: Vec<Value>,
    /// True if these are all.
    pub whole: bool,
}
