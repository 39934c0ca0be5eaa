//! The writes of a worker: claims, checkpoints, settlements. Every write but the claim is fenced by a lease.

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
    Settlement, Timestamp, TurnWrite,
};

/// The kind of a job: any OJS worker serves plain jobs, ours serve agent jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JobKind {
    /// It carries an input into an engagement.
    Agent,
    /// It is nothing but an OJS envelope.
    Plain,
}

impl JobKind {
    /// The kind of a new job.
    #[must_use]
    pub fn of(job: &NewJob) -> Self {
        if job.engagement.is_some() { Self::Agent } else { Self::Plain }
    }

    /// Reads [`JobKind::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Agent, Self::Plain].into_iter().find(|kind| kind.as_str() == text)
    }

    /// The kind as in the database.
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
    /// Which kind of jobs.
    pub kind: JobKind,
    /// The queues, in order of preference; `*` means all.
    pub queues: Vec<String>,
    /// At most this many jobs: the free slots.
    pub limit: usize,
    /// The worker; empty for a worker over HTTP that gives no name.
    pub worker_id: String,
    /// How long the leases last, in milliseconds. A plain job that says how long it is to be reserved has that instead.
    pub lease_ms: i64,
    /// Only jobs of this tenant; `None` is any.
    pub tenant: Option<String>,
    /// The features of the worker's runtime: it gets only jobs that need no more. `None` serves every job.
    pub runtime_tags: Option<Vec<String>>,
    /// Now.
    pub now: Timestamp,
}

/// A claimed job with everything that is needed to resume where it stopped.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The job.
    pub job: JobId,
    /// Its type.
    pub job_type: String,
    /// How often it was claimed, this time included.
    pub attempt: i64,
    /// How often it failed so far.
    pub failures: i64,
    /// How many workers in a row lost it before they could commit anything.
    pub lapses: i64,
    /// When and how often it is tried again.
    pub retry: RetryPolicy,
    /// The longest this attempt may be active, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// The job as its client sent it.
    pub envelope: Envelope,
    /// The results of the predecessors in its workflow, the immediate one first: JSON texts.
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
    /// Lost leases in a row after which a worker runs a job alone.
    pub const LAPSES_IN_COMPANY: i64 = 3;

    /// Returns true if a worker has to run it alone: it may be what kills the workers.
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
    /// The agent, as it was when the engagement began; shared between claims of the same definition.
    pub agent: Arc<AgentDefinition>,
    /// The position of the job.
    pub position: Position,
    /// The checkpoints of the unfinished turn, in order.
    pub checkpoints: Vec<Checkpoint>,
    /// The budget.
    pub budget: Budget,
    /// The number of agents above it (agent extension §2.3), counted by the store.
    pub depth: i64,
    /// The shared budgets that it may have to pay into as well, as of the claim.
    pub budgets: Vec<AppliedBudget>,
    /// The memory of the engagement.
    pub past: Past,
}

/// The memory of an engagement, as a claim returns it.
#[derive(Clone, Debug)]
pub enum Past {
    /// Nothing: its first turn begins.
    Nothing,
    /// These messages and nothing else: its first turn was interrupted before a tool was called.
    Messages(Vec<StoredMessage>),
    /// More, which [`LedgerReads::recall`] reads.
    Stored,
}

/// The memory of an engagement, for a turn that continues it.
#[derive(Clone, Debug, Default)]
pub struct Recall {
    /// The newest messages, oldest first.
    pub messages: Vec<StoredMessage>,
    /// The first user message of this job, when it fell out of the window.
    pub input: Option<StoredMessage>,
    /// The tool journal: all of it when asked for, else the calls of the current turn.
    pub tool_calls: Vec<ToolCall>,
    /// Reviews about calls of the current turn, oldest first.
    pub reviews: Vec<ReviewAnswer>,
    /// The delegations of the current turn, in the order in which they were asked for.
    pub delegations: Vec<Delegated>,
    /// The origin of a fork, and the recorded outcomes that replace its calls.
    pub fork: Option<(Origin, Recorded)>,
}

/// A call's work by another agent.
#[derive(Clone, Debug)]
pub struct Delegated {
    /// The call.
    pub call_id: CallId,
    /// The agent that works.
    pub agent: String,
    /// On which terms.
    pub mode: DelegationMode,
    /// Its state.
    pub state: DelegationState,
    /// Its job.
    pub job: JobId,
    /// Its answer.
    pub result: Option<RawJson>,
    /// Why it failed last.
    pub error: Option<JobError>,
    /// When it was asked.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
}

/// The states of leases, by their tokens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// The leases that belong to another worker, or to none.
    pub lost: Vec<String>,
    /// Their jobs are paused: they are to be given back after the current phase.
    pub paused: Vec<String>,
    /// Calls of their jobs were asked to be made again, and how often that has happened.
    pub calls_again: Vec<(String, i64)>,
}

/// The answer to a checkpoint that is committed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Committed {
    /// The engagement's budget after it.
    pub budget: Budget,
    /// The job was paused before it was committed: no further phase that calls anything may begin.
    pub paused: bool,
}

/// The worker's writes. A decorator of a ledger forwards these, and hands on the reads.
#[async_trait]
pub trait Ledger: Send + Sync + 'static {
    /// Claims up to `limit` available jobs, highest priority first, then oldest: `available → active`.
    async fn claim(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError>;

    /// Commits everything in `write`, extends the lease by `lease_ms` from `now`, and returns the budget after it. A pause
    /// that was answered before is in the answer.
    async fn checkpoint(
        &self,
        lease: &Lease,
        write: TurnWrite,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Committed, LedgerError>;

    /// Commits what is left in `write` and ends the lease, in one transaction. An outstanding reservation is given
    /// back.
    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError>;

    /// Extends leases by `lease_ms` from `now`; returns the tokens of those that are lost.
    async fn extend(
        &self,
        leases: &[Lease],
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Vec<String>, StoreError>;

    /// Gives unstarted jobs back: `active → available`, no failure.
    async fn release(&self, leases: &[Lease], now: Timestamp) -> Result<(), StoreError>;

    /// Reports that this worker is alive, and returns the directive of an operator for it. Its first beat registers it.
    ///
    /// # Errors
    /// [`StoreError::WorkerNameTaken`] when another instance of this name was seen less than `silent_ms` ago.
    async fn beat(&self, beat: WorkerBeat, silent_ms: i64) -> Result<Option<Directive>, StoreError>;

    /// Takes a worker off the list, at its orderly end.
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

    /// The tokens of those leases that are lost; writes nothing.
    async fn lost(&self, leases: &[Lease]) -> Result<Vec<String>, StoreError> {
        Ok(self.standing(leases).await?.lost)
    }

    /// The state of a scope at `now`: keys whose time is over are not there.
    async fn state(&self, scope: &Scope, now: Timestamp) -> Result<StateSnapshot, StoreError>;

    /// The artifacts that an engagement keeps, in order.
    async fn artifacts_of(&self, engagement: &EngagementId) -> Result<Vec<Artifact>, StoreError>;

    /// Returns the content of an artifact; `None` when it is not kept.
    async fn artifact_bytes(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns the registered agents of these names, as they are now; unknown names are left out.
    async fn agents(&self, names: &[String]) -> Result<Vec<AgentDefinition>, StoreError>;

    /// One of the calls that are on record for a fork's job ([`Recorded`]), with what it came to.
    async fn recorded_call(&self, job: &JobId, call: &CallId) -> Result<Option<ToolCall>, StoreError>;

    /// Returns what was said in the newest completed jobs that the agent of this one remembers of its user, oldest
    /// first (OAS-51). The [rules](turnstone_domain::memory::rules) choose the jobs. A delegate, a fork and a
    /// branch get nothing.
    async fn memories(&self, job: &JobId, rules: &str) -> Result<Vec<Exchange>, StoreError>;

    /// The bodies of PERSIST's checkpoints of a job in the turns from `from` up to, but not including,
    /// `until`, oldest first: the results of a flow's nodes.
    async fn persisted(&self, job: &JobId, from: i64, until: i64) -> Result<Vec<Value>, StoreError>;

    /// Returns the memory of the engagement. `window` is the number of messages; `whole_journal` asks for every
    /// tool call.
    async fn recall(
        &self,
        job: &JobId,
        turn: i64,
        window: u32,
        whole_journal: bool,
    ) -> Result<Recall, StoreError>;
}
