//! The only place that knows SQL. Small traits, one per caller or concern; each method is one transaction.
//!
//! | trait | caller |
//! |---|---|
//! | [`Intake`] | api: what enters |
//! | [`IdempotentPushes`] | pushes that are applied once per idempotency key |
//! | [`Ledger`] | worker: claims, checkpoints, settlements |
//! | [`Upkeep`] | scheduler: what time does |
//! | [`Views`] | everybody: reads |
//! | [`Remote`] | what workers in any language write, reached over HTTP: acknowledgements, failures, beats, saved states, progress |
//! | [`Queues`] | queues as operators see them: paused, bounded, limited, weighted |
//! | [`Operate`] | what operators do to many jobs at once: dead letters, bulk, statistics, tenants |
//! | [`Workflows`] | chains, groups and batches: jobs that wait for one another |
//! | [`Crons`] | entries that make a job at times |
//! | [`Schemas`] | what the arguments of a job type have to look like |
//! | [`Tenants`] | what operators allow tenants |
//! | [`Feed`] | all events in one order |
//! | [`Webhooks`] | who is told of events, and what became of it |
//! | [`Artifacts`] | files that agents made |
//! | [`Breakers`](breakers::Breakers) | worker: circuit breakers |
//! | [`Credentials`](credentials::Credentials) | what tools are called with for users and static identities |
//! | [`Elsewhere`](elsewhere::Elsewhere) | worker: calls that agents of other servers work for, and that nobody waits for |
//! | [`Budgets`] | budgets that engagements share, what an engagement may spend, and what was spent |
//! | [`Delegations`] | agents that work for agents: who for whom |
//! | [`Forks`] | engagements that go on from a turn of another one, whose past they share |
//! | [`Runs`] | runs as the Agent Protocol tells them |
//! | [`Transfers`] | engagements that come from another store |
//! | [`Control`] | an engagement is paused, resumed, forked, merged, or one of its calls made again |

mod artifacts;
pub mod breakers;
mod budgets;
mod cipher;
mod control;
pub mod credentials;
mod crons;
mod delegations;
mod doorbell;
pub mod elsewhere;
mod engine;
mod error;
mod feed;
mod fleet;
mod forks;
mod idempotency;
mod intake;
mod ledger;
pub mod limits;
mod live;
mod migrations;
mod operate;
pub mod postgres;
mod questions;
mod queues;
pub mod redis;
mod remote;
mod runs;
mod schemas;
mod sql;
pub mod sqlite;
mod tenants;
mod transfers;
mod upkeep;
mod views;
mod webhooks;
mod workflows;

pub use artifacts::Artifacts;
pub use budgets::{BudgetRow, Budgets, DailyCost, EngagementCost, OwnBudget, Raise, SharedBudget, Spending};
pub use cipher::EncryptionKeys;
pub use control::{
    Branch, Control, Controlled, Fork, Merge, Merged, Refusal, Retried, ServerKey, Strategy, Target,
    ToolRetry,
};
pub use crons::{Crons, Firing};
pub use delegations::{Delegations, Kin, Kindred};
pub use doorbell::{Doorbell, Ring};
pub use error::{LedgerError, NotContinued, StoreError};
pub use feed::{Feed, FeedPage};
pub use fleet::{Directive, WorkerBeat, WorkerKind, WorkerState};
pub use forks::{ForkRefusal, Forks, NewFork};
pub use idempotency::{AnswerOfPush, IdempotentPush, IdempotentPushes, RecordedPush};
pub use intake::{
    AgentRemoval, AgentRemoved, AnswerOutcome, CancelOutcome, Decision, DecisionOutcome, Intake, NewAgent,
    NewAnswer, Pressure, Pushed,
};
pub use ledger::{
    Claim, ClaimRequest, Committed, Delegated, EngagementClaim, JobKind, Ledger, Past, Recall, Standing,
};
pub use live::{Ear, Live, Piece, Speaker};
pub use operate::{ActionOutcome, Bulk, BulkOutcome, DeadTotal, JobAction, Operate, TenantTotal};
pub use postgres::{Counters, Finding, PostgresOptions, PostgresStore};
pub use questions::{GivenAnswer, Questions};
pub use queues::{ConfigChange, Limit, Pool, PoolStrategy, Queue, QueueLimits, Queues, Retention, Share};
pub use remote::{
    DEFAULT_VISIBILITY_MS, Heartbeat, HeartbeatAnswer, NewProgress, Progress, Remote, RemoteOutcome, Report,
    ReportedEnd,
};
pub use runs::{Configured, News, RunEvent, RunPage, RunRequest, RunRow, RunSettings, Runs, Told};
pub use schemas::Schemas;
pub use sqlite::SqliteStore;
pub use tenants::{TenantLimits, TenantSetup, Tenants};
pub use transfers::{ImportRefusal, Transfers};
pub use upkeep::{Duty, Term, Upkeep};
pub use views::{
    AgentRecord, CheckpointRow, EngagementFilter, EventFilter, Gauges, HourlyCount, JobFilter, JobOrder,
    ListedEngagement, Page, ReviewFilter, TaskFilter, TaskPlace, Views,
};

pub use webhooks::{Taking, Webhooks};
pub use workflows::{
    NewStep, NewWorkflow, WaitingJob, Workflow, WorkflowCancel, WorkflowFilter, WorkflowStep, Workflows,
};

use breakers::Breakers;
use credentials::Credentials;
use elsewhere::Elsewhere;
use limits::RateLimits;
use std::sync::Arc;

/// A store behind its four traits.
#[derive(Clone)]
pub struct Store {
    /// What enters.
    pub intake: Arc<dyn Intake>,
    /// Pushes that are applied once per idempotency key.
    pub idempotency: Arc<dyn IdempotentPushes>,
    /// Claims, checkpoints, settlements.
    pub ledger: Arc<dyn Ledger>,
    /// What time does.
    pub upkeep: Arc<dyn Upkeep>,
    /// Reads.
    pub views: Arc<dyn Views>,
    /// What workers in any language write, reached over HTTP: acknowledgements, failures, beats, saved states, progress.
    pub remote: Arc<dyn Remote>,
    /// Queues as operators see them: paused, bounded, limited, weighted.
    pub queues: Arc<dyn Queues>,
    /// What operators do to many jobs at once: dead letters, bulk, statistics, tenants.
    pub operate: Arc<dyn Operate>,
    /// Chains, groups and batches: jobs that wait for one another.
    pub workflows: Arc<dyn Workflows>,
    /// Entries that make a job at times.
    pub crons: Arc<dyn Crons>,
    /// What the arguments of a job type have to look like.
    pub schemas: Arc<dyn Schemas>,
    /// All events in one order.
    pub feed: Arc<dyn Feed>,
    /// Who is told of events, and what became of it.
    pub webhooks: Arc<dyn Webhooks>,
    /// What operators allow tenants.
    pub tenants: Arc<dyn Tenants>,
    /// An engagement is paused, resumed, forked, merged, or one of its calls made again.
    pub control: Arc<dyn Control>,
    /// Files that agents made.
    pub artifacts: Arc<dyn Artifacts>,
    /// Calls that agents of other servers work for, and that nobody waits for any more.
    pub elsewhere: Arc<dyn Elsewhere>,
    /// Circuit breakers that the fleet shares.
    pub breakers: Arc<dyn Breakers>,
    /// What tools are called with for users and static identities.
    pub credentials: Arc<dyn Credentials>,
    /// Agents that work for agents: who for whom.
    pub delegations: Arc<dyn Delegations>,
    /// Budgets that engagements share, what an engagement may spend, and what was spent.
    pub budgets: Arc<dyn Budgets>,
    /// Engagements that go on from a turn of another one, whose past they share.
    pub forks: Arc<dyn Forks>,
    /// What agents ask, and how it was answered.
    pub questions: Arc<dyn Questions>,
    /// Runs as the Agent Protocol tells them.
    pub runs: Arc<dyn Runs>,
    /// Engagements that come from another store.
    pub transfers: Arc<dyn Transfers>,
    /// Rate limits of all processes that use this store.
    pub limits: Arc<dyn RateLimits>,
    /// Hints that something may have changed.
    pub doorbell: Doorbell,
}
