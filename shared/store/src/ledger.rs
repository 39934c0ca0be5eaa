//! The writes and reads of our workers: claims, checkpoints, settlements, and what a turn needs to continue.
//!
//! Every write but the claim carries a lease, and the store compares its fencing token in the transaction. When the token is no
//! longer the job's, the write changes nothing and returns [`LedgerError::LeaseLost`]. So does a write of a turn whose record does
//! not end where the write [follows](TurnWrite::follows) it: the database has lost commits since.

use crate::{Directive, LedgerError, StoreError, WorkerBeat};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::artifact::Artifact;
use turnstone_domain::budget::{AppliedBudget, Budget};
use turnstone_domain::engagement::Engagement;
use turnstone_domain::fork::{Origin, Recorded};
use turnstone_domain::job::Envelope;
use turnstone_domain::memory::Exchange;
use turnstone_domain::message::StoredMessage;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::review::ReviewAnswer;
use turnstone_domain::session_state::{Scope, StateSnapshot};
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{
    AgentDefinition, ArtifactId, CallId, Checkpoint, EngagementId, JobError, JobId, Lease, NewJob, RawJson,
    RecordEnd, Settlement, Timestamp, TurnWrite,
};

/// The kind of a job. Plain jobs are run by OJS workers in any language over HTTP, agent jobs by our workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobKind {
    /// It carries an input into an engagement.
    Agent,
    /// It is an OJS envelope without an engagement.
    Plain,
}

impl JobKind {
    /// Returns the kind of a new job.
    #[must_use]
    pub fn of(job: &NewJob) -> Self {
        if job.engagement.is_some() { Self::Agent } else { Self::Plain }
    }

    /// Parses the text of [`JobKind::as_str`]; `None` for an unknown one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Agent, Self::Plain].into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns the kind as the database has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Plain => "plain",
        }
    }
}

/// A worker's request for jobs.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// The kind of jobs that it runs.
    pub kind: JobKind,
    /// The queues, in order of preference; `*` means all.
    pub queues: Vec<String>,
    /// The most jobs to claim: the number of its free slots.
    pub limit: usize,
    /// The name of the worker; empty for a worker over HTTP that has none.
    pub worker_id: String,
    /// The duration of the leases, in milliseconds. A plain job that states a `visibility_timeout_ms` of its own gets that.
    pub lease_ms: i64,
    /// Only jobs of this tenant; `None` is any.
    pub tenant: Option<String>,
    /// The features of the worker's runtime: it gets only jobs that require no others. `None` means that it runs every job.
    pub runtime_tags: Option<Vec<String>>,
    /// The current time, from the worker's clock.
    pub now: Timestamp,
}

/// A claimed job with everything that is needed to resume where it stopped.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// Its type.
    pub job_type: String,
    /// The number of claims of the job so far, this one included.
    pub attempt: i64,
    /// The number of failed attempts so far.
    pub failures: i64,
    /// The number of leases in a row that expired before their worker committed anything for the job.
    pub lapses: i64,
    /// The retry policy: when and how often it is tried again.
    pub retry: RetryPolicy,
    /// The longest this attempt may be active, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The job as its client sent it.
    pub envelope: Envelope,
    /// The results of the jobs before it in its workflow, as JSON texts: the result of the job directly before it is first.
    pub parent_results: Option<Vec<String>>,
    /// −100 to 100; higher goes first.
    pub priority: i64,
    /// When the job was accepted.
    pub created_at: Timestamp,
    /// The right to write it.
    pub lease: Lease,
    /// The agent side; `None` for a plain job.
    pub engagement: Option<EngagementClaim>,
}

impl Claim {
    /// The number of [`Claim::lapses`] after which a worker runs the job alone.
    pub const LAPSES_IN_COMPANY: i64 = 3;

    /// Returns true if the worker has to run the job while it runs no other. The job may be the cause that its workers died, and
    /// then the other jobs of the worker would lose their leases as well.
    #[must_use]
    pub fn runs_alone(&self) -> bool {
        self.lapses >= Self::LAPSES_IN_COMPANY
    }
}

/// The agent side of a claim.
#[derive(Clone, Debug)]
pub struct EngagementClaim {
    /// The engagement.
    pub engagement: Engagement,
    /// The agent as it was when the engagement began. Claims of the same definition share one value.
    pub agent: Arc<AgentDefinition>,
    /// The position of the job: the number of the turn to run, and what earlier turns left.
    pub position: Position,
    /// The checkpoints of the unfinished turn, in the order of the phases; empty when a turn begins.
    pub checkpoints: Vec<Checkpoint>,
    /// The end of the record, which the first write under this lease follows.
    pub record_end: RecordEnd,
    /// The budget of the engagement.
    pub budget: Budget,
    /// The number of agents above it (agent extension §2.3), counted by the store.
    pub depth: i64,
    /// The number of jobs that its tree ever had, as of the claim.
    pub tree_jobs: i64,
    /// The shared budgets that its calls may be charged to as well, as of the claim.
    pub budgets: Vec<AppliedBudget>,
    /// The messages of the engagement, if the claim has read them.
    pub past: Past,
}

/// The past of an engagement, or the part of it that a claim reads. A claim reads little, so that a new job costs one statement.
#[derive(Clone, Debug)]
pub enum Past {
    /// There is none: the first turn of the engagement begins.
    Nothing,
    /// It consists of these messages: the first turn was interrupted before a tool was called.
    Messages(Vec<StoredMessage>),
    /// It has to be read with [`LedgerReads::recall`].
    Stored,
}

/// The past of an engagement, as a turn needs it to continue.
#[derive(Clone, Debug, Default)]
pub struct Recall {
    /// The newest messages, oldest first.
    pub messages: Vec<StoredMessage>,
    /// The input of this job, when it is older than the newest messages.
    pub input: Option<StoredMessage>,
    /// The tool journal: all of it if `whole_journal` is true, otherwise the calls of the current turn and the calls of
    /// earlier turns that are to be repeated.
    pub tool_calls: Vec<ToolCall>,
    /// Reviews about calls of the current turn, oldest first.
    pub reviews: Vec<ReviewAnswer>,
    /// The delegations of the current turn, in the order in which they were begun.
    pub delegations: Vec<Delegated>,
    /// For a fork: its origin, and the recorded outcomes that it reuses.
    pub fork: Option<(Origin, Recorded)>,
}

/// A delegation: a call of a turn that another agent answers, in an engagement of its own.
#[derive(Clone, Debug)]
pub struct Delegated {
    /// The call.
    pub call_id: CallId,
    /// The name of the delegate.
    pub agent: String,
    /// The mode: supervisor, parallel or handoff.
    pub mode: DelegationMode,
    /// The state of the delegation.
    pub state: DelegationState,
    /// The delegate's job.
    pub job: JobId,
    /// The delegate's answer, once its job has completed.
    pub result: Option<RawJson>,
    /// The last error of the delegate's job.
    pub error: Option<JobError>,
    /// The time at which the delegation began.
    pub started_at: Timestamp,
    /// The time at which it ended.
    pub ended_at: Option<Timestamp>,
}

/// The changes of the leases of a worker, by their tokens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// The leases that have ended: another worker has the job, or none.
    pub lost: Vec<String>,
    /// The leases of paused jobs: the worker has to give these jobs back after the current phase.
    pub paused: Vec<String>,
    /// The leases of jobs for which a client asked to repeat calls, each with the number of such requests.
    pub calls_again: Vec<(String, i64)>,
}

/// The result of a committed checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Committed {
    /// The engagement's budget after it.
    pub budget: Budget,
    /// True if the job was paused before this commit: the turn must call no model and no tool after it.
    pub paused: bool,
    /// The end of the record after it, which the next write follows.
    pub record_end: RecordEnd,
}

/// The worker's writes. A type that wraps a ledger forwards these, and returns the reads of the wrapped one.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Claims up to `limit` available jobs, highest priority first, then oldest: `available → active`.
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError>;

    /// Commits everything in `write` and extends the lease until `now` plus `lease_ms`, in one transaction. Returns the budget
    /// after it, and says if the job was paused: a pause that the API acknowledged before this commit is never missed.
    ///
    /// # Errors
    /// [`LedgerError::LeaseLost`]. [`LedgerError::BudgetExceeded`] or [`LedgerError::Unpriced`] for a reservation or a payment.
    /// [`LedgerError::StateConflict`] for a change of the agent's state. After these nothing was committed. Or the failure of the
    /// store.
    async fn checkpoint(
        &self,
        lease: &Lease,
        write: TurnWrite,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Committed, LedgerError>;

    /// Commits what is left in `write`, moves the job to its next state and ends the lease, in one transaction. Reservations
    /// that are still open are released.
    ///
    /// # Errors
    /// As [`Ledger::checkpoint`].
    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError>;

    /// Extends leases until `now` plus `lease_ms`; returns the tokens of those that are lost.
    async fn extend(
        &self,
        leases: &[Lease],
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Vec<String>, StoreError>;

    /// Ends leases without a settlement: `active → available`, no failure. The worker uses it for jobs that it claimed and does
    /// not start, and at the end of a drain for turns that it interrupted.
    async fn release(&self, leases: &[Lease], now: Timestamp) -> Result<(), StoreError>;

    /// Reports that this worker is alive, and returns the directive of an operator for it. Its first beat registers it.
    ///
    /// # Errors
    /// [`StoreError::WorkerNameTaken`] when another instance of this name was seen less than `silent_ms` ago.
    async fn beat(&self, beat: WorkerBeat, silent_ms: i64) -> Result<Option<Directive>, StoreError>;

    /// Takes a worker off the fleet's list, when it ends after a drain.
    async fn leave(&self, name: &str, instance: &str) -> Result<(), StoreError>;

    /// Returns the reads of the same store.
    fn reads(&self) -> &dyn LedgerReads;
}

/// The worker's reads. They change nothing.
#[async_trait]
pub trait LedgerReads: Send + Sync + 'static {
    /// Returns the states of these leases; writes nothing.
    async fn standing(&self, leases: &[Lease]) -> Result<Standing, StoreError>;

    /// Returns the highest priority of an agent job that could be claimed at once from one of these queues (`*`
    /// means all); writes nothing. Queues that are paused or limited are left out.
    async fn most_urgent(&self, queues: &[String]) -> Result<Option<i64>, StoreError>;

    /// Returns the tokens of those leases that are lost; writes nothing.
    async fn lost(&self, leases: &[Lease]) -> Result<Vec<String>, StoreError> {
        Ok(self.standing(leases).await?.lost)
    }

    /// Returns the state that an agent keeps in a scope, without the keys that have expired at `now`.
    async fn state(&self, scope: &Scope, now: Timestamp) -> Result<StateSnapshot, StoreError>;

    /// Returns the files that an engagement keeps, the oldest first.
    async fn artifacts_of(&self, engagement: &EngagementId) -> Result<Vec<Artifact>, StoreError>;

    /// Returns the content of a file; `None` when it is not kept.
    async fn artifact_bytes(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns the registered agents of these names, as they are now. Unknown names are left out, and agents that do not
    /// serve the tenant; `None` is the fleet.
    async fn agents(
        &self,
        names: &[String],
        tenant: Option<&str>,
    ) -> Result<Vec<AgentDefinition>, StoreError>;

    /// Returns a recorded call that a fork's job may reuse ([`Recorded`]), with its outcome.
    async fn recorded_call(&self, job: &JobId, call: &CallId) -> Result<Option<ToolCall>, StoreError>;

    /// Returns the inputs and answers of earlier engagements between this job's user and agent, the oldest first (OAS-51). The
    /// [rules](turnstone_domain::memory::rules) choose the newest completed jobs. A delegate, a fork and a branch get none.
    async fn memories(&self, job: &JobId, rules: &str) -> Result<Vec<Exchange>, StoreError>;

    /// Returns the bodies of the PERSIST checkpoints of a job, the oldest first: the results of a flow's nodes. `from` is the
    /// first turn, and `until` the turn after the last.
    async fn persisted(&self, job: &JobId, from: i64, until: i64) -> Result<Vec<Value>, StoreError>;

    /// Returns the past of the engagement for its `turn`. `window` is the most messages. `whole_journal` asks for the calls of
    /// all turns.
    async fn recall(
        &self,
        job: &JobId,
        turn: i64,
        window: u32,
        whole_journal: bool,
    ) -> Result<Recall, StoreError>;
}
