//! The shapes of workers' requests and responses, for the OpenAPI document.

use crate::docs;
use serde_json::{Map, Value};
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
#[derive(ToSchema)]
#[schema(as = FetchedJobs)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Fetched {
    jobs: Vec<docs::Job>,
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
#[derive(ToSchema)]
#[schema(as = AckReply)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Acknowledged {
    acknowledged: bool,
    id: String,
    job_id: String,
    #[schema(example = "completed")]
    state: String,
    completed_at: String,
    job: docs::Job,
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
#[derive(ToSchema)]
#[schema(as = NackReply)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Nacked {
    id: String,
    job_id: String,
    /// retryable, discarded or available.
    state: String,
    /// The attempt that failed.
    attempt: i64,
    max_attempts: i64,
    /// When it is tried again.
    next_attempt_at: Option<String>,
    retry_delay_ms: Option<i64>,
    discarded_at: Option<String>,
    completed_at: Option<String>,
    job: docs::Job,
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
#[derive(ToSchema)]
#[schema(as = HeartbeatReply)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Heard {
    /// running, quiet or terminate.
    state: String,
    /// The same.
    directive: String,
    jobs_extended: Vec<String>,
    server_time: String,
}

/// The heartbeat was recorded.
#[derive(ToSchema)]
#[schema(as = BeatReply)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Beaten {
    acknowledged: bool,
    /// running or draining: the state that the worker reported.
    state: String,
    /// running, quiet or terminate: its directive.
    directive: String,
    jobs_extended: Vec<String>,
    server_time: String,
}

/// The health of a worker.
#[derive(ToSchema)]
#[schema(as = WorkerHealth)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Health {
    worker_id: String,
    /// running, draining or silent.
    state: String,
    /// ok, degraded or unhealthy.
    status: String,
    last_seen_at: String,
    active_jobs: i64,
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
#[derive(ToSchema)]
#[schema(as = SavedState)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct SavedState {
    job_id: String,
    state: Value,
    /// 1 for the first save.
    sequence: i64,
    created_at: String,
    checkpoint: Map<String, Value>,
}

/// The saved state was deleted.
#[derive(ToSchema)]
#[schema(as = ForgottenState)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Forgotten {
    job_id: String,
    deleted: bool,
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
#[derive(ToSchema)]
#[schema(as = JobProgress)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Progress {
    job_id: String,
    progress: Option<f64>,
    message: Option<String>,
    data: Option<Value>,
    /// The state of the job.
    state: String,
    updated_at: Option<String>,
}

/// A job that may continue.
#[derive(ToSchema)]
#[schema(as = ActivatedJob)]
#[expect(dead_code, reason = "described, never built")]
pub(super) struct Activated {
    job: docs::Job,
    id: String,
    #[schema(example = "available")]
    state: String,
    activated_at: String,
    #[schema(example = "pending")]
    previous_state: String,
}
