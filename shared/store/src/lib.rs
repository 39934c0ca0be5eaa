//! The store: the only crate that knows SQL and Redis.
//!
//! [`Store`] has one handle per concern, such as queues or budgets. A method that writes is one transaction, and returns after
//! its commit; a method that reads changes nothing. [`Ledger`], [`Upkeep`], [`Breakers`] and [`RateLimits`] are traits, because
//! tests and other crates replace or decorate them. Everything else is concrete.
//!
//! [`SqliteStore`] and [`PostgresStore`] open a store. Above the connection both run the same code.
//!
//! ```text
//!  api, worker, scheduler
//!    │ handles (the fields of [`Store`])
//!    ▼
//!  engine ── reads ──▶ session of a reading connection ─────────────╮
//!    │                                                              │
//!    ╰─ writes ─▶ writer: one transaction for all waiting writes    │
//!                   │ ops: decide in memory                         ├─▶ cipher ─▶ sqlite, postgres
//!                   │ unit: the rows that changed ─▶ flush ─────────╯
//!                   ▼
//!                doorbell ─▶ claimers and streams, in this and in other processes (redis, LISTEN)
//!
//!  beside the engine: limits (rate limits in memory, database or Redis), live (text of models), migrations
//! ```

pub mod breakers;
mod cipher;
mod damage;
mod doorbell;
mod engine;
mod error;
mod fleet;
mod ledger;
pub mod limits;
mod live;
mod migrations;
pub mod postgres;
pub mod redis;
mod sql;
pub mod sqlite;
mod upkeep;
mod views;

pub use cipher::EncryptionKeys;
pub use damage::{damaged_rows, unreadable};
pub use doorbell::{Doorbell, Ring};
pub use engine::artifacts::Artifacts;
pub use engine::audit::{Audit, AuditNote, audited};
pub use engine::batches::{Batch, Batches};
pub use engine::budgets::{
    BudgetRow, Budgets, DailyCost, EngagementCost, OwnBudget, Raise, SharedBudget, Spending,
};
pub use engine::control::{
    Branch, Control, Controlled, Fork, Merge, Merged, Refusal, Retried, ServerKey, Strategy, Target,
    ToolRetry,
};
pub use engine::crons::{Crons, Firing};
pub use engine::delegations::{DelegationLink, DelegationLinks, Delegations};
pub use engine::feed::{Feed, FeedPage};
pub use engine::forks::{ForkRefusal, Forks, NewFork};
pub use engine::freezes::{Freeze, Freezes};
pub use engine::idempotency::{AnswerOfPush, IdempotentPush, IdempotentPushes, RecordedPush};
pub use engine::inspect::{DamagedValue, Inspected, RawRow};
pub use engine::intake::{
    AgentRemoval, AgentRemoved, AnswerOutcome, CancelOutcome, Decision, DecisionOutcome, Intake, NewAgent,
    NewAnswer, NewTenants, Pressure, Pushed,
};
pub use engine::keys::{Keys, NewKeyOutcome, Rotation};
pub use engine::operate::{ActionOutcome, Bulk, BulkOutcome, DeadTotal, JobAction, Operate, TenantTotal};
pub use engine::questions::{GivenAnswer, Questions};
pub use engine::queues::{
    ConfigChange, Limit, Pool, PoolStrategy, Queue, QueueLimits, Queues, Retention, Share,
};
pub use engine::remote::{
    DEFAULT_VISIBILITY_MS, FetchedJob, Heartbeat, HeartbeatAnswer, HeartbeatOutcome, LeasedJob, NewProgress,
    Progress, Remote, RemoteOutcome, Report, ReportedEnd,
};
pub use engine::runs::{
    Configured, News, RunEvent, RunPage, RunPosition, RunRequest, RunRow, RunSettings, Runs,
};
pub use engine::schemas::Schemas;
pub use engine::tenants::{TenantLimits, TenantSetup, Tenants};
pub use engine::transfers::{ImportRefusal, Transfers};
pub use engine::views::Views;
pub use engine::{credentials, remote_calls};
pub use error::{LedgerError, NotContinued, StoreError};
pub use fleet::{Directive, WorkerBeat, WorkerKind, WorkerState};
pub use ledger::{
    Claim, ClaimRequest, Committed, Delegated, EngagementClaim, JobKind, Ledger, LedgerReads, Past, Recall,
    Standing,
};
pub use live::{Ear, Live, Piece, Speaker};
pub use migrations::MigrationFile;
pub use postgres::{Counters, Finding, PostgresOptions, PostgresStore};
pub use sqlite::SqliteStore;
pub use upkeep::{Duty, Term, Upkeep};
pub use views::{
    AgentRecord, CheckpointRow, EngagementFilter, EventFilter, Gauges, HourlyCount, JobFilter, JobOrder,
    JobsWithMeta, ListedEngagement, OpenTransaction, Page, ReviewFilter, TaskFilter, TaskPlace,
};

pub use engine::webhooks::{Taking, Webhooks};
pub use engine::workflows::{
    NewStep, NewWorkflow, WaitingJob, Workflow, WorkflowCancel, WorkflowFilter, WorkflowStep, Workflows,
};

pub(crate) use engine::{control, idempotency, runs};

use breakers::Breakers;
use engine::credentials::Credentials;
use engine::remote_calls::RemoteCalls;
use limits::RateLimits;
use std::sync::Arc;

/// The handles of a store: one per concern.
#[derive(Clone)]
pub struct Store {
    /// The requests of clients: jobs, agents, answers to questions, and cancellations.
    pub intake: Intake,
    /// Pushes that are applied once per idempotency key.
    pub idempotency: IdempotentPushes,
    /// The writes of our workers: claims, checkpoints, settlements.
    pub ledger: Arc<dyn Ledger>,
    /// The scheduler's duties.
    pub upkeep: Arc<dyn Upkeep>,
    /// The reads of the API: jobs, agents, engagements, reviews, checkpoints.
    pub views: Views,
    /// The writes of workers in any language, over HTTP: acknowledgements, failures, beats, saved states, progress.
    pub remote: Remote,
    /// Queues, and what operators set for them: pauses, bounds, rate limits, weights.
    pub queues: Queues,
    /// The work of operators on many jobs: dead letters, bulk operations, statistics, totals of tenants.
    pub operate: Operate,
    /// Chains, groups and batches: jobs that wait for one another.
    pub workflows: Workflows,
    /// Cron entries, which make jobs at set times.
    pub crons: Crons,
    /// The schemas of job types' arguments.
    pub schemas: Schemas,
    /// The events of all jobs, in one order.
    pub feed: Feed,
    /// Webhooks: the subscribers to events, and the outcome of each delivery.
    pub webhooks: Webhooks,
    /// The limits that operators set for tenants.
    pub tenants: Tenants,
    /// Control of an engagement: pause, resume, fork, merge, repeat a call.
    pub control: Control,
    /// Files that agents save.
    pub artifacts: Artifacts,
    /// The work of remote agents that has to be cancelled.
    pub remote_calls: RemoteCalls,
    /// Circuit breakers that the fleet shares.
    pub breakers: Arc<dyn Breakers>,
    /// The credentials with which tools are called, of users and of static identities.
    pub credentials: Credentials,
    /// The audit of changes.
    pub audit: Audit,
    /// API keys of principals.
    pub keys: Keys,
    /// Freezes of the fleet and of tenants.
    pub freezes: Freezes,
    /// Engagements that work for a call of another engagement.
    pub delegations: Delegations,
    /// The jobs with one tag, as a unit.
    pub batches: Batches,
    /// The budgets of engagements, the budgets that engagements share, and the costs.
    pub budgets: Budgets,
    /// Forks: engagements that continue from a turn of another one.
    pub forks: Forks,
    /// The questions of agents, and how they were answered.
    pub questions: Questions,
    /// Runs and their numbered events, for the Agent Protocol.
    pub runs: Runs,
    /// The import of engagements from another store.
    pub transfers: Transfers,
    /// The rate limits of models, for all processes that use this store.
    pub limits: Arc<dyn RateLimits>,
    /// Notifications that something may have changed. One may be lost, so every listener polls as well.
    pub doorbell: Doorbell,
}
