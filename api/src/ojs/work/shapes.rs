//! The answers to workers.

use serde::Serialize;
use turnstone_domain::{JobState, RawJson};
use turnstone_ojs::{JobBody, JobReply};
use utoipa::ToSchema;

/// Jobs to be worked on, each active and reserved.
#[derive(Serialize, ToSchema)]
#[schema(as = FetchedJobs)]
pub(super) struct Fetched {
    pub(super) jobs: Vec<JobBody>,
}

/// The job as the acknowledgement left it.
#[derive(Serialize, ToSchema)]
#[schema(as = AckReply)]
pub(super) struct Acknowledged {
    pub(super) acknowledged: bool,
    pub(super) id: String,
    pub(super) job_id: String,
    #[schema(example = "completed")]
    pub(super) state: &'static str,
    pub(super) completed_at: String,
    pub(super) job: JobBody,
}

/// The job as the report left it.
#[derive(Serialize, ToSchema)]
#[schema(as = NackReply)]
pub(super) struct Nacked {
    pub(super) id: String,
    pub(super) job_id: String,
    /// retryable, discarded or available.
    pub(super) state: &'static str,
    /// The attempt that failed.
    pub(super) attempt: i64,
    pub(super) max_attempts: i64,
    /// When it is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_attempt_at: Option<String>,
    /// Of a retryable job: the delay after this failure; null when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>)]
    pub(super) retry_delay_ms: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) discarded_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) completed_at: Option<String>,
    pub(super) job: JobBody,
}

/// The directive of the worker.
#[derive(Serialize, ToSchema)]
#[schema(as = HeartbeatReply)]
pub(super) struct Heard {
    /// running, quiet or terminate.
    pub(super) state: &'static str,
    /// The same.
    pub(super) directive: &'static str,
    pub(super) jobs_extended: Vec<String>,
    pub(super) server_time: String,
}

/// The heartbeat was recorded.
#[derive(Serialize, ToSchema)]
#[schema(as = BeatReply)]
pub(super) struct Beaten {
    pub(super) acknowledged: bool,
    /// running or draining: the state that the worker reported.
    pub(super) state: &'static str,
    /// running, quiet or terminate: its directive.
    pub(super) directive: &'static str,
    pub(super) jobs_extended: Vec<String>,
    pub(super) server_time: String,
}

/// The health of a worker.
#[derive(Serialize, ToSchema)]
#[schema(as = WorkerHealth)]
pub(super) struct Health {
    pub(super) worker_id: String,
    /// running, draining or silent.
    pub(super) state: &'static str,
    /// ok, degraded or unhealthy.
    pub(super) status: &'static str,
    pub(super) last_seen_at: String,
    pub(super) active_jobs: i64,
}

/// The saved state, and the same in `checkpoint` for clients that expect a wrapper.
#[derive(Serialize, ToSchema)]
#[schema(as = SavedState)]
pub(super) struct SavedStateReply {
    #[serde(flatten)]
    pub(super) flat: ShownState,
    pub(super) checkpoint: ShownState,
}

/// A saved state of a job.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = SavedCheckpoint)]
pub(super) struct ShownState {
    pub(super) job_id: String,
    #[schema(value_type = Value)]
    pub(super) state: RawJson,
    /// 1 for the first save.
    pub(super) sequence: i64,
    pub(super) created_at: String,
}

/// The saved state was deleted.
#[derive(Serialize, ToSchema)]
#[schema(as = ForgottenState)]
pub(super) struct Forgotten {
    pub(super) job_id: String,
    pub(super) deleted: bool,
}

/// The progress of a job; `null` when none was reported.
#[derive(Serialize, ToSchema)]
#[schema(as = JobProgress)]
pub(super) struct Progress {
    pub(super) job_id: String,
    pub(super) progress: Option<f64>,
    pub(super) message: Option<String>,
    #[schema(value_type = Option<Value>)]
    pub(super) data: Option<RawJson>,
    /// The state of the job.
    pub(super) state: &'static str,
    pub(super) updated_at: Option<String>,
}

/// A job that may continue.
#[derive(Serialize, ToSchema)]
#[schema(as = ActivatedJob)]
pub(super) struct Activated {
    #[serde(flatten)]
    pub(super) reply: JobReply,
    pub(super) activated_at: String,
    #[schema(value_type = String, example = "pending")]
    pub(super) previous_state: JobState,
}
