//! What workers in any language write, reached over HTTP: acknowledgements, failures, beats, saved states, progress.
//!
//! Such a worker shows no fencing token. It names the job, and itself if it likes; the job has to be active, and held by
//! the worker that is named. Only plain jobs are served this way.

use crate::{ClaimRequest, Directive, StoreError, WorkerState};
use async_trait::async_trait;
use turnstone_domain::job::SavedState;
use turnstone_domain::{Job, JobError, JobId, JobState, RawJson, Timestamp};

/// How long a plain job is reserved when neither it nor its worker says otherwise, in milliseconds: 30 minutes (OJS
/// worker protocol §6.1).
pub const DEFAULT_VISIBILITY_MS: i64 = 1_800_000;

/// What a worker says of a job that it holds.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The job.
    pub job: JobId,
    /// Who says it, if it says so.
    pub worker: Option<String>,
    /// Only a job of this tenant; `None` is any.
    pub tenant: Option<String>,
    /// What became of it.
    pub end: ReportedEnd,
    /// Now.
    pub at: Timestamp,
}

/// What became of a job, as its worker says.
#[derive(Clone, PartialEq, Debug)]
pub enum ReportedEnd {
    /// It is done (OJS HTTP binding §5.5).
    Done {
        /// Any JSON.
        result: RawJson,
    },
    /// It failed; its retry policy decides what follows (OJS HTTP binding §5.6).
    Failed {
        /// Why.
        error: JobError,
    },
    /// It is given back as if it had not been fetched: at once, and without an attempt less.
    Back,
}

/// What became of something that a worker asked for about a job.
#[derive(Clone, PartialEq, Debug)]
pub enum RemoteOutcome<T> {
    /// It is done.
    Done(T),
    /// There is no such job.
    NotFound,
    /// The job is in a state in which it cannot be done; nothing changed.
    WrongState(JobState),
    /// Somebody else holds the job; nothing changed.
    NotYours {
        /// Who.
        holder: String,
    },
    /// The job waits for an answer to a review, or is served by our own workers; nothing changed.
    NotForYou,
}

/// A sign of life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Heartbeat {
    /// Who beats.
    pub worker: String,
    /// The jobs whose reservations are to be renewed.
    pub jobs: Vec<JobId>,
    /// How many jobs it works on, if it says so.
    pub busy: Option<i64>,
    /// Whether it takes on new jobs, if it says so.
    pub state: Option<WorkerState>,
    /// How long the reservations last from now, instead of as long as they were given, in milliseconds.
    pub visibility_ms: Option<i64>,
    /// Only jobs of this tenant; `None` is any.
    pub tenant: Option<String>,
    /// Now.
    pub at: Timestamp,
}

/// The answer to a sign of life.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeartbeatAnswer {
    /// Whether the server takes it for one that takes on new jobs.
    pub state: WorkerState,
    /// What it is to do.
    pub directive: Option<Directive>,
    /// The jobs whose reservations were renewed, in the order in which they were named.
    pub extended: Vec<JobId>,
}

/// How far a job is (OJS progress).
#[derive(Clone, PartialEq, Debug)]
pub struct NewProgress {
    /// Of the whole, in millionths; what is more or less than all is cut.
    pub millionths: i64,
    /// In words.
    pub message: Option<String>,
    /// For programs: JSON text.
    pub data: Option<String>,
    /// A state to be saved with it: JSON text.
    pub state: Option<String>,
}

/// How far a job is, as it is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Where the job stands.
    pub job_state: JobState,
    /// Of the whole, in millionths; a completed job is all done. `None`: nobody has said.
    pub millionths: Option<i64>,
    /// In words.
    pub message: Option<String>,
    /// For programs: JSON text.
    pub data: Option<String>,
    /// When it was told last.
    pub at: Option<Timestamp>,
}

/// The side of the store for workers over HTTP. `tenant` limits each call to the jobs of one; `None` is any.
#[async_trait]
pub trait Remote: Send + Sync + 'static {
    /// Claims plain jobs, as [`crate::Ledger::claim`] does, and shows them: `available → active`. Each is reserved for
    /// its own time, else for the request's. A worker that drains, or was told to, gets nothing; so does one that has
    /// no name and no job.
    async fn fetch(&self, request: ClaimRequest) -> Result<Vec<Job>, StoreError>;

    /// Ends or gives back an active job. Reports that arrive together share a transaction and its statements. The job
    /// is shown as the report left it.
    async fn report(&self, report: Report) -> Result<RemoteOutcome<Box<Job>>, StoreError>;

    /// Registers the worker, renews reservations, and says what the worker is to do.
    ///
    /// # Errors
    /// [`StoreError::WorkerNameTaken`] when one of our own workers has this name.
    async fn heartbeat(&self, heartbeat: Heartbeat) -> Result<HeartbeatAnswer, StoreError>;

    /// Tells a worker what to do from its next beat on; `None` takes it back. False when nobody of this name has ever
    /// been heard of.
    async fn direct(&self, worker: &str, directive: Option<Directive>) -> Result<bool, StoreError>;

    /// `pending → available` (OJS core §5.2).
    async fn activate(
        &self,
        job: &JobId,
        tenant: Option<&str>,
        at: Timestamp,
    ) -> Result<RemoteOutcome<Box<Job>>, StoreError>;

    /// Saves a state, JSON text, over the last one, in every state that is not terminal (OJS durable execution §4).
    async fn save_state(
        &self,
        job: &JobId,
        tenant: Option<&str>,
        state: String,
        at: Timestamp,
    ) -> Result<RemoteOutcome<SavedState>, StoreError>;

    /// Forgets the saved state, if there is one; false when there is no such job.
    async fn forget_state(&self, job: &JobId, tenant: Option<&str>) -> Result<bool, StoreError>;

    /// Tells how far an active job is, and renews its reservation. Of a job that is not active it changes nothing.
    async fn tell_progress(
        &self,
        job: &JobId,
        tenant: Option<&str>,
        progress: NewProgress,
        at: Timestamp,
    ) -> Result<Option<Progress>, StoreError>;

    /// How far a job is; `None` when there is no such job.
    async fn progress(&self, job: &JobId, tenant: Option<&str>) -> Result<Option<Progress>, StoreError>;
}
