//! What an operator may set about a worker.

use std::time::Duration;
use turnstone_domain::artifact::ArtifactLimits;
use turnstone_domain::budget::OnExceed;

/// Settings of one worker process.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Stable for the life of the process; OSSA's instance id.
    pub worker_id: String,
    /// Queues in order of preference; `*` stands for all.
    pub queues: Vec<String>,
    /// Turns in flight at once.
    pub slots: usize,
    /// How long a lease lasts without a sign of life.
    pub lease: Duration,
    /// How long a drain may take before turns in flight are let go.
    pub drain_grace: Duration,
    /// The longest one model call may take unless the agent says less.
    pub model_timeout: Duration,
    /// The most tokens one answer may have unless agent or job say otherwise.
    pub max_tokens: i64,
    /// What becomes of a job whose next call does not fit into a budget that does not say so itself.
    pub on_exceed: OnExceed,
    /// How long a parked job waits for its budget to be raised; `None` is without end.
    pub raise_wait: Option<Duration>,
    /// How long a reviewer of an OpenAgentSpec agent has before silence is a no; `None` waits for ever (OAS-A10).
    pub review_deadline: Option<Duration>,
    /// How large the files may be that agents make.
    pub artifacts: ArtifactLimits,
}

impl WorkerOptions {
    /// The deadline of reviews in milliseconds.
    #[must_use]
    pub fn review_deadline_ms(&self) -> Option<i64> {
        self.review_deadline.map(|wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
    }

    /// The lease in milliseconds, as the ledger takes it.
    #[must_use]
    pub fn lease_ms(&self) -> i64 {
        i64::try_from(self.lease.as_millis()).unwrap_or(i64::MAX)
    }
}
