//! Runs as the Agent Protocol tells them: the events of an engagement and of those that work for it, numbered without
//! gaps.
//!
//! Numbers are given when somebody asks (`docs/adr/0006`): whoever reads a run first writes down what is new, and what is
//! written down once is told to everybody with the same numbers.

use crate::{Page, StoreError};
use async_trait::async_trait;
use serde_json::{Map, Value};
use turnstone_domain::message::StoredMessage;
use turnstone_domain::{EngagementId, JobId, RawObject, Timestamp};

/// Up to where a run was told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Told {
    /// The number of its last event; 0 before the first.
    pub last: i64,
    /// Up to where each engagement was read, as the reader wrote it down; empty before the first.
    pub marks: String,
}

/// A request of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRequest {
    /// The job that it is.
    pub job: JobId,
    /// The number of its first event.
    pub began: i64,
    /// The number of its last event, once it has ended.
    pub ended: Option<i64>,
    /// Up to where it was polled by those who did not say where they stand.
    pub seen: i64,
}

/// An event of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunEvent {
    /// Its number: 1-based, without gaps within the run.
    pub id: i64,
    /// The request that it belongs to; `None` when that is pruned already.
    pub request: Option<JobId>,
    /// The event as it is sent: JSON.
    pub body: String,
}

/// Events of a run that are read at once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunPage {
    /// The events, oldest first.
    pub events: Vec<RunEvent>,
    /// Whether there may be more already: a page ends early when its events are long.
    pub more: bool,
}

/// A run as lists show it.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRow {
    /// Its id.
    pub id: EngagementId,
    /// When it began.
    pub started_at: Timestamp,
    /// When something happened in it last.
    pub changed_at: Timestamp,
    /// The number of its last event that was told.
    pub last: i64,
    /// Its requests, the oldest first, with the `meta` and the tenant of their jobs; at most 100.
    pub requests: Vec<(JobId, RawObject, Option<String>)>,
}

/// What is to be told next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct News {
    /// The events with the requests they belong to: JSON with the number that they get, `last + 1` and on.
    pub events: Vec<(JobId, String)>,
    /// Requests that began or ended with these events, by their numbers.
    pub requests: Vec<(JobId, i64, Option<i64>)>,
    /// Up to where each engagement is read then.
    pub marks: String,
}

/// What clients have configured for later requests: members of an object.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunSettings {
    /// How often that was changed; 0 when it never was.
    pub version: i64,
    /// Setting and value.
    pub args: Map<String, Value>,
}

/// What settings are for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configured {
    /// The agent.
    pub agent: String,
    /// Whose runs.
    pub tenant: Option<String>,
    /// One run of them, or all.
    pub run: Option<EngagementId>,
}

/// Keeps runs.
#[async_trait]
pub trait Runs: Send + Sync + 'static {
    /// Up to where a run was told.
    async fn told(&self, run: &EngagementId) -> Result<Told, StoreError>;

    /// Tells what comes after `last`. False, and nothing is written, when somebody else has told more by then.
    async fn tell(&self, run: &EngagementId, last: i64, news: News) -> Result<bool, StoreError>;

    /// Events after number `after`, oldest first; of one request or of all. At most `limit`, and fewer when they are longer than
    /// a megabyte together, but never none when there is one.
    async fn run_events(
        &self,
        run: &EngagementId,
        after: i64,
        request: Option<&JobId>,
        limit: u32,
    ) -> Result<RunPage, StoreError>;

    /// What was said in a turn, oldest first; at most `limit` messages.
    async fn said(&self, id: &EngagementId, turn: i64, limit: u32) -> Result<Vec<StoredMessage>, StoreError>;

    /// The requests of a run that have begun, in their order.
    async fn run_requests(&self, run: &EngagementId) -> Result<Vec<RunRequest>, StoreError>;

    /// The runs of an agent, the newest first; of this tenant, or of everybody.
    async fn runs_of(&self, agent: &str, tenant: Option<&str>, page: Page)
    -> Result<Vec<RunRow>, StoreError>;

    /// Notes that a request was polled from number `from` up to `to`; false when somebody else has polled meanwhile.
    async fn polled(&self, request: &JobId, from: i64, to: i64) -> Result<bool, StoreError>;

    /// What was configured for exactly this.
    async fn settings(&self, of: &Configured) -> Result<RunSettings, StoreError>;

    /// Configures it when it was at `version` before; false when somebody else has done so meanwhile.
    async fn configure(
        &self,
        of: &Configured,
        version: i64,
        args: Map<String, Value>,
    ) -> Result<bool, StoreError>;
}
