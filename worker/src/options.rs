//! The operator's settings of a worker.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use turnstone_domain::agent::FanOutRules;
use turnstone_domain::artifact::ArtifactLimits;
use turnstone_domain::budget::OnExceed;

/// Settings of one worker process.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Stable for the life of the process; OSSA's instance id.
    pub worker_id: String,
    /// Queues in order of preference; `*` means all.
    pub queues: Vec<String>,
    /// The most turns at once.
    pub slots: usize,
    /// The duration of a lease without an extension.
    pub lease: Duration,
    /// The longest that a drain waits for turns in progress.
    pub drain_grace: Duration,
    /// The longest one model call may take, unless the agent sets less.
    pub model_timeout: Duration,
    /// The most tokens of one answer, unless agent or job set another number.
    pub max_tokens: i64,
    /// The answer to a prompt that is longer than the model's context.
    pub on_context_overflow: OnContextOverflow,
    /// The fate of a job whose next call does not fit into a budget without a rule of its own.
    pub on_exceed: OnExceed,
    /// The longest that a parked job waits for a raise of its budget; `None` is without end.
    pub raise_wait: Option<Duration>,
    /// The time for a reviewer of an OpenAgentSpec agent to answer before the review expires; `None` waits
    /// for ever (OAS-A10).
    pub review_deadline: Option<Duration>,
    /// The bounds for files that agents make.
    pub artifacts: ArtifactLimits,
    /// The bounds for delegations.
    pub fan_out: FanOutRules,
}

/// The answer to a prompt that is longer than the model's context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnContextOverflow {
    /// The next model of the list whose configured context has room; if there is none, as [`Self::Shorten`].
    #[default]
    Fallback,
    /// The oldest outcomes of tools are shortened; if there are none, as [`Self::Fail`].
    Shorten,
    /// The job fails for good.
    Fail,
}

impl WorkerOptions {
    /// Returns the deadline of reviews in milliseconds.
    #[must_use]
    pub fn review_deadline_ms(&self) -> Option<i64> {
        self.review_deadline.map(|wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
    }

    /// Returns the lease in milliseconds, in the ledger's form.
    #[must_use]
    pub fn lease_ms(&self) -> i64 {
        i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX)
    }
}
