//! The errors of a store.

use turnstone_domain::budget::Short;
use turnstone_domain::{EngagementId, JobId, JobState};

/// Why an engagement takes no further input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotContinued {
    /// There is no such engagement of this tenant and user.
    #[error("there is no such engagement")]
    Unknown,
    /// Its last input is answered, failed or cancelled.
    #[error("it has ended; its last job is {0}")]
    Ended(JobState),
    /// A reviewer is asked about the input that it works on.
    #[error("it waits for a review")]
    InReview,
}

/// A failure of the store itself. The caller may try again; nothing was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The database did not answer, or answered with an error.
    #[error("the database failed while it was asked to {action}: {message}")]
    Database {
        /// The action that failed.
        action: &'static str,
        /// The database's own words.
        message: String,
    },
    /// The database cannot be reached, shuts down or starts up, or had to break off the transaction: trying again
    /// helps.
    #[error("the database could not {action}: {message}")]
    Unavailable {
        /// The action that failed.
        action: &'static str,
        /// The database's own words.
        message: String,
    },
    /// Redis did not answer, or answered with an error.
    #[error("Redis failed while it was asked to {action}: {message}")]
    Redis {
        /// The action that failed.
        action: &'static str,
        /// The error.
        message: String,
    },
    /// A text holds the character U+0000, which PostgreSQL cannot store; nothing was written.
    #[error("a text ({text}) contains the character U+0000 (NUL), which cannot be stored")]
    Nul {
        /// The column of the text, or the action that it is for.
        text: &'static str,
    },
    /// A row was written by a version that this one does not understand, or is damaged.
    #[error("a row cannot be read by this version: column {column}: {message}")]
    Unreadable {
        /// The column.
        column: String,
        /// The fault in it.
        message: String,
    },
    /// A row violates a rule of the store.
    #[error("table {table}, row {row}: column {column} cannot be read: {message}")]
    Inconsistent {
        /// The table.
        table: &'static str,
        /// The column.
        column: &'static str,
        /// The row's key.
        row: String,
        /// The fault in it.
        message: String,
    },
    /// The queue takes only jobs that ask for attestation; nothing was stored.
    #[error("queue {queue} does not take this job: it {why}")]
    NotAttested {
        /// The queue.
        queue: String,
        /// The property that the job lacks.
        why: String,
    },
    /// A job with this id exists already (OJS core §6.1).
    #[error("a job with id {0} exists already")]
    DuplicateJob(JobId),
    /// Jobs or workflows of several tenants have this id, and the request names no tenant.
    #[error("several tenants have the id {id}")]
    AmbiguousId {
        /// The id.
        id: String,
        /// The tenants; `None` for what belongs to none.
        tenants: Vec<Option<String>>,
    },
    /// A list was to continue after a job that is not stored.
    #[error("the list cannot continue after job {0}, which is not stored")]
    UnknownPlace(JobId),
    /// A cursor names a commit that this database does not have: its events were deleted, or the database lost them in a
    /// failover or is an older copy.
    #[error("the events up to cursor {cursor} are not in this database")]
    CursorLost {
        /// The cursor.
        cursor: String,
    },
    /// A workflow with this id exists already.
    #[error("a workflow with id {0} exists already")]
    DuplicateWorkflow(String),
    /// A job that would not be unique (OJS unique jobs §4): nothing of its push was stored.
    #[error("job {job} would not be unique beside job {existing}")]
    NotUnique {
        /// The job that was refused.
        job: JobId,
        /// The one that exists.
        existing: JobId,
    },
    /// The queue is full; nothing was stored (OJS backpressure).
    #[error("queue {queue} is full: {depth} of {bound} wait")]
    QueueFull {
        /// The queue.
        queue: String,
        /// The number of waiting jobs, or of their bytes where those are bounded.
        depth: i64,
        /// The most that may wait.
        bound: i64,
    },
    /// A tenant has as much as it may have; nothing was stored (OJS multi-tenancy §8).
    #[error("tenant {tenant} has {current} of {maximum} ({limit})")]
    TenantLimit {
        /// The tenant.
        tenant: String,
        /// Which limit, as on the wire.
        limit: &'static str,
        /// The current number.
        current: i64,
        /// The most it may have.
        maximum: i64,
    },
    /// The tenant, or the fleet, has as many of these as it may have; nothing was stored.
    #[error("there are {most} {what}, and no more are allowed")]
    TooMany {
        /// Of what: `crons` or `webhooks`.
        what: &'static str,
        /// The most.
        most: u32,
    },
    /// The job would work for another one, deeper than either may (agent extension §3); nothing of its push was stored.
    #[error("job {job} would stand {depth} deep in its delegation chain; at most {most} is allowed")]
    TooDeep {
        /// The job.
        job: JobId,
        /// The depth that it would have.
        depth: i64,
        /// How deep it may.
        most: i64,
    },
    /// The job would join a tree that has as many jobs as it may have; nothing of its push was stored.
    #[error("job {job} would join a tree of {jobs} jobs; at most {most} are allowed")]
    TreeFull {
        /// The job.
        job: JobId,
        /// The number of jobs that the tree has.
        jobs: i64,
        /// The most that it may have.
        most: i64,
    },
    /// The job names a parent that its tenant does not have (agent extension §2.3); nothing of its push was stored.
    #[error("job {job} names the parent {parent}, which is no job of an agent here")]
    UnknownParent {
        /// The job.
        job: JobId,
        /// The parent that it names.
        parent: JobId,
    },
    /// The engagement does not take the input that a job carries; nothing of its push was stored.
    #[error("engagement {engagement} takes no further input: {why}")]
    NotContinued {
        /// The engagement.
        engagement: EngagementId,
        /// Why.
        why: NotContinued,
    },
    /// The engagement was imported, and nothing admits its agent; nothing was changed.
    #[error("agent {agent} of an imported engagement is not registered here with the same definition")]
    NotRegistered {
        /// The agent's name.
        agent: String,
        /// True if an agent of this name is registered, with another definition.
        is_other: bool,
    },
    /// Another scheduler leads; nothing was changed.
    #[error("another scheduler leads now")]
    Deposed,
    /// Another worker of this name is alive.
    #[error(
        "a worker named `{name}` is running already: process {pid} on {host}. Give this one another name (--name), or \
         stop the other"
    )]
    WorkerNameTaken {
        /// The name.
        name: String,
        /// Where the other runs.
        host: String,
        /// Its process there.
        pid: i64,
    },
    /// The database is there, but not fit for use; the sentence says what to do.
    #[error("{0}")]
    Unfit(String),
    /// The configuration names the database, Redis or the keys wrongly; the sentence says what to do.
    #[error("{0}")]
    Misconfigured(String),
    /// The store was closed while the call was waiting.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Returns true if it is about what is stored, and not about the database: trying again does not help.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Unreadable { .. } | Self::Inconsistent { .. })
    }
}

/// Why a write under a lease was refused.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LedgerError {
    /// Zero rows matched the fencing token: another worker owns the job now, or it was cancelled. Or the database has lost commits
    /// of the job, and its record does not end where the write follows it. Touch nothing.
    #[error("the lease on job {0} is lost")]
    LeaseLost(JobId),
    /// A reservation does not fit into a budget; nothing of the write was applied.
    #[error("the budget has {left} left, {needed} are needed")]
    BudgetExceeded {
        /// The amount left: tokens, or millionths of a currency.
        left: i64,
        /// The amount to reserve.
        needed: i64,
        /// Which budget it is.
        of: Box<Short>,
    },
    /// A budget in money applies to something that has no price in its currency; nothing of the write was applied.
    #[error("budget {budget} is in money, and this has no price in its currency")]
    Unpriced {
        /// The budget's name.
        budget: String,
        /// Its currency, when the price is in another one.
        currency: Option<String>,
    },
    /// Another turn has changed the state that this one has read; nothing of the write was applied.
    #[error("another turn has changed the state that this one has read")]
    StateConflict,
    /// The store failed; nothing of the write was applied.
    #[error(transparent)]
    Store(#[from] StoreError),
}
