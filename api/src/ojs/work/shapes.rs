//! The shapes of workers' requests and responses, for the OpenAPI document.

use serde::Serialize;
use serde_json::{Map, Value};
use turnstone_domain::{JobState, RawJson};
use turnstone_ojs::{JobBody, JobReply};
use utoipa::ToSchema;

/// The jobs that a worker requests.
#[derive(ToSchema)]
#[schema(as = FetchRequest, example = json!({"queues": ["mail", "default"], "count": 5, "worker_id": "mailer-1"}))]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Fetch {
    /// In order of preference; at least one.
    queues: Vec<String>,
    /// At most this many jobs; 1 when it is left out, never more than 1000.
    count: Option<u32>,
    worker_id: Option<String>,
    /// How long the jobs are reserved unless they say so themselves.
    visibility_timeout_ms: Option<u64>,
    runtime: Option<Runtime>,
}

/// The tags that a worker's runtime offers: it gets only jobs that need no others.
#[derive(ToSchema)]
#[schema(as = FetchRuntime)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Runtime {
    name: Option<String>,
    version: Option<String>,
    tags: Option<Vec<String>>,
}

/// Jobs to be worked on, each active and reserved.
#[derive(Serialize, ToSchema)]
#[schema(as = FetchedJobs)]
pub(super) struct Fetched {
    pub(super) jobs: Vec<JobBody>,
}

/// The result of a job.
#[derive(ToSchema)]
#[schema(as = AckRequest, example = json!({"job_id": "0190a7b2-0000-7000-8000-000000000001", "result": {"sent": true}}))]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Ack {
    /// Needed where the path does not name the job.
    job_id: Option<String>,
    /// Any JSON.
    result: Option<Value>,
    /// Has to be the worker that fetched the job, when it is sent.
    worker_id: Option<String>,
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

/// A job failed, or is given back.
#[derive(ToSchema)]
#[schema(as = NackRequest, example = json!({"job_id": "0190a7b2-0000-7000-8000-000000000001",
    "error": {"code": "smtp_error", "message": "The relay refused the message.", "retryable": true}}))]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Nack {
    /// Needed where the path does not name the job.
    job_id: Option<String>,
    /// Needed unless the job is given back.
    error: Option<FailureReport>,
    /// Gives the job back at once, as if it had not been fetched.
    requeue: Option<bool>,
    /// Has to be the worker that fetched the job, when it is sent.
    worker_id: Option<String>,
}

/// Why it failed. One of code, message and type has to be there.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct FailureReport {
    code: Option<String>,
    message: Option<String>,
    /// The class of the error, which `non_retryable_errors` may list.
    #[schema(rename = "type")]
    error_type: Option<String>,
    /// `false` ends the job regardless of its retry policy.
    retryable: Option<bool>,
    details: Option<Map<String, Value>>,
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

/// A heartbeat. Named jobs are reserved anew.
#[derive(ToSchema)]
#[schema(as = BeatRequest, example = json!({"worker_id": "mailer-1", "active_jobs": ["0190a7b2-0000-7000-8000-000000000001"]}))]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Beat {
    worker_id: String,
    /// Ids of jobs, or their number.
    active_jobs: Option<Value>,
    active_job_ids: Option<Vec<String>>,
    job_id: Option<String>,
    /// How long the reservations last from now.
    visibility_timeout_ms: Option<u64>,
    /// running; or quiet, drain, draining, shutting_down, terminate, after which it gets no more jobs.
    #[schema(example = "running")]
    state: Option<String>,
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

/// A state to be kept for the next attempt.
#[derive(ToSchema)]
#[schema(as = SaveState, example = json!({"state": {"page": 17}}))]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct NewState {
    /// Any JSON, at most 1 MiB.
    state: Value,
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

/// The progress of a job.
#[derive(ToSchema)]
#[schema(as = NewProgress, example = json!({"progress": 0.5, "message": "half of the pages"}))]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct NewProgress {
    /// From 0 to 1; other values are clamped.
    progress: f64,
    message: Option<String>,
    /// Any JSON.
    data: Option<Value>,
    /// A state to be saved with it.
    checkpoint: Option<Value>,
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
