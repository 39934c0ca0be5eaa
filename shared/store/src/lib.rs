//! The only place that knows SQL. Four small traits, one per caller; each method is one transaction.
//!
//! | trait | caller |
//! |---|---|
//! | [`Intake`] | api: what enters |
//! | [`Ledger`] | worker: claims, checkpoints, settlements |
//! | [`Upkeep`] | scheduler: what time does |
//! | [`Views`] | everybody: reads |

mod doorbell;
mod engine;
mod error;
mod fleet;
mod intake;
mod ledger;
pub mod limits;
mod migrations;
pub mod postgres;
pub mod redis;
mod sql;
pub mod sqlite;
mod upkeep;
mod views;

pub use doorbell::{Doorbell, Ring};
pub use error::{LedgerError, StoreError};
pub use fleet::{WorkerBeat, WorkerState};
pub use intake::{CancelOutcome, Decision, DecisionOutcome, Intake, NewAgent, Pushed};
pub use ledger::{Claim, ClaimRequest, EngagementClaim, JobKind, Ledger, Recall, ReviewAnswer};
pub use postgres::{Finding, PostgresOptions, PostgresStore};
pub use sqlite::SqliteStore;
pub use upkeep::{Duty, Term, Upkeep};
pub use views::{AgentRecord, CheckpointRow, EventFilter, HourlyCount, JobFilter, Page, ReviewFilter, Views};

use limits::RateLimits;
use std::sync::Arc;

/// A store behind its four traits.
#[derive(Clone)]
pub struct Store {
    /// What enters.
    pub intake: Arc<dyn Intake>,
    /// Claims, checkpoints, settlements.
    pub ledger: Arc<dyn Ledger>,
    /// What time does.
    pub upkeep: Arc<dyn Upkeep>,
    /// Reads.
    pub views: Arc<dyn Views>,
    /// Rate limits of all processes that use this store.
    pub limits: Arc<dyn RateLimits>,
    /// Hints that something may have changed.
    pub doorbell: Doorbell,
}
