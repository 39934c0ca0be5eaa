//! Reads. None of them changes anything.

use std::fmt;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::review::ReviewState;
use turnstone_domain::{
    AgentDefinition, Checkpoint, EngagementId, Job, JobId, JobState, ReviewId, Timestamp,
};

/// Which part of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// At most this many.
    pub limit: u32,
    /// After this many.
    pub offset: u32,
}

/// The order of a list of jobs.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub enum JobOrder {
    /// When they were accepted.
    #[default]
    Accepted,
    /// Their priority.
    Priority,
    /// How often they were claimed.
    Attempt,
    /// When they may run at the earliest.
    Due,
    /// When they ended; those that have not come as if they had ended before all others.
    Ended,
}

/// Which jobs.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct JobFilter {
    /// In this state.
    pub state: Option<JobState>,
    /// In this queue.
    pub queue: Option<String>,
    /// Of this type.
    pub job_type: Option<String>,
    /// Jobs of this tenant; `None` means any tenant.
    pub tenant: Option<String>,
    /// Accepted then or later.
    pub since: Option<Timestamp>,
    /// Accepted before then.
    pub until: Option<Timestamp>,
    /// With this tag.
    pub tag: Option<String>,
    /// Of an engagement of this agent.
    pub agent: Option<String>,
    /// With this code of their last error.
    pub error_code: Option<String>,
    /// With this value of a member of their `meta`: the path with dots, and the value. Only
    /// [`crate::Views::jobs_with_meta`] looks at it.
    pub meta: Option<(String, String)>,
    /// Behind the job with this id in a list by acceptance.
    pub after: Option<JobId>,
    /// The order of the list.
    pub order: JobOrder,
    /// The least first, instead of the greatest.
    pub ascending: bool,
}

/// A part of a list of jobs by their `meta`.
#[derive(Clone, PartialEq, Debug)]
pub struct JobsWithMeta {
    /// The jobs.
    pub jobs: Vec<Job>,
    /// The job behind which the list continues; `None` at its end.
    pub next_after: Option<JobId>,
}

/// Which tasks: the jobs of an agent, as A2A lists them.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct TaskFilter {
    /// The agent.
    pub agent: String,
    /// Of this tenant; `None` means any tenant.
    pub tenant: Option<String>,
    /// In this engagement.
    pub engagement: Option<EngagementId>,
    /// In one of these states; none is any.
    pub states: Vec<JobState>,
    /// True for those that have begun, false for those that have not.
    pub begun: Option<bool>,
    /// That ended, began or were accepted then or later.
    pub since: Option<Timestamp>,
    /// Those behind this one of the list.
    pub after: Option<TaskPlace>,
}

/// The position of a task in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskPlace {
    /// When it ended, or else began, or else was accepted.
    pub changed_at: Timestamp,
    /// Its number.
    pub position: i64,
}

/// Which reviews.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct ReviewFilter {
    /// In this state.
    pub state: Option<ReviewState>,
    /// Asked of this reviewer.
    pub reviewer: Option<String>,
    /// Reviews about jobs of this tenant; `None` means any tenant.
    pub tenant: Option<String>,
    /// About this engagement.
    pub engagement: Option<EngagementId>,
    /// The review that they follow.
    pub after: Option<ReviewId>,
}

/// Which engagements.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct EngagementFilter {
    /// Of this agent.
    pub agent: Option<String>,
    /// Begun then or later.
    pub since: Option<Timestamp>,
    /// Engagements with a job of this tenant; `None` means any tenant.
    pub tenant: Option<String>,
    /// Those behind this position of the list.
    pub after: Option<i64>,
}

/// An engagement as listed.
#[derive(Clone, PartialEq, Debug)]
pub struct ListedEngagement {
    /// Its position; [`EngagementFilter::after`] continues the list behind it.
    pub position: i64,
    /// The engagement.
    pub engagement: Engagement,
    /// Its latest job.
    pub job_id: JobId,
    /// The state of that job.
    pub job_state: JobState,
}

/// Which stream of events.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum EventFilter {
    /// All events of an engagement.
    Engagement(EngagementId),
    /// All events of a job, plain or agent. Positions are those of its stream.
    Job(JobId),
}

/// A registered agent.
#[derive(Clone, PartialEq, Debug)]
pub struct AgentRecord {
    /// The definition that the document was read as.
    pub definition: AgentDefinition,
    /// The document as it was written.
    pub source: String,
    /// When it was registered last.
    pub updated_at: Timestamp,
    /// The tenants that it serves; `None` is all.
    pub tenants: Option<Vec<String>>,
}

impl AgentRecord {
    /// Returns true if the agent serves a tenant. The fleet, which has no name, uses every agent.
    #[must_use]
    pub fn serves(&self, tenant: Option<&str>) -> bool {
        serves(self.tenants.as_deref(), tenant)
    }
}

/// Returns true if a tenant is among those that an agent serves.
pub(crate) fn serves(tenants: Option<&[String]>, tenant: Option<&str>) -> bool {
    let (Some(tenants), Some(tenant)) = (tenants, tenant.filter(|name| !name.is_empty())) else {
        return true;
    };
    tenants.iter().any(|name| name == tenant)
}

/// A checkpoint with its job, as listed.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct CheckpointRow {
    /// The job whose turn it was.
    pub job_id: JobId,
    /// The checkpoint.
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
}

/// How many jobs of a queue ended in a state within an hour.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct HourlyCount {
    /// The hour's beginning.
    pub hour: Timestamp,
    /// The queue.
    pub queue: String,
    /// `completed`, `cancelled` or `discarded`.
    pub state: JobState,
    /// How many.
    pub jobs: i64,
    /// The tokens they used.
    pub tokens: i64,
    /// The sum of the times from acceptance to end, in milliseconds.
    pub took_ms: i64,
}

/// The numbers that operators watch and alert on, as of now.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Gauges {
    /// How many jobs ever ended, per queue and state; those of the last minute may be missing.
    pub ended: Vec<(String, JobState, u64)>,
    /// Since when the job waits to be claimed that has waited longest, per queue that has any.
    pub oldest: Vec<(String, Timestamp)>,
    /// Reviews that are open.
    pub open_reviews: u64,
    /// The oldest transaction of the database server that is open for more than a minute.
    pub oldest_transaction: Option<OpenTransaction>,
}

/// A transaction of a PostgreSQL server that is open for long. It keeps vacuum from removing old rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenTransaction {
    /// Its database.
    pub database: String,
    /// The server's process that runs it.
    pub pid: i64,
    /// Its age.
    pub seconds: i64,
}

impl fmt::Display for OpenTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { database, pid, seconds } = self;
        write!(f, "a transaction of database {database} (pid {pid}) has been open for {seconds} s")
    }
}
