//! The terms of an enqueue request beyond what, where and when: uniqueness, limits, reservations, tenancy.

use crate::{JobId, JobState};
use serde::{Deserialize, Serialize};

/// The terms of a job; the default asks for nothing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Terms {
    /// The tenant (OJS multi-tenancy); `None` belongs to none.
    pub tenant: Option<String>,
    /// The duration of a lease of this job, for every worker, in milliseconds (OJS worker protocol §6.3).
    pub visibility_ms: Option<i64>,
    /// It waits in `pending` until a client activates it.
    pub pending: bool,
    /// The uniqueness that it requires.
    pub unique: Option<Unique>,
    /// The start rate of the job and of all that share its limit.
    pub rate_limit: Option<RateLimit>,
    /// The tags that the runtime of its worker must offer.
    pub runtime_tags: Vec<String>,
    /// The tags by which lists find it, each once.
    pub tags: Vec<String>,
    /// The cron entry that made it.
    pub cron: Option<String>,
    /// The results of the predecessors in its workflow, the immediate one first: JSON texts.
    pub parent_results: Option<Vec<String>>,
    /// The agent job that it works for: it joins that one's budget, one deeper (agent extension §2.3).
    pub works_for: Option<JobId>,
    /// The most jobs that the tree of its parent may have, which the server sets; `None` is the default of all agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs_per_tree: Option<u32>,
    /// The existing engagement that it continues with a further input, instead of beginning one.
    pub continues: Option<Continues>,
}

impl Terms {
    /// The most tags of a job.
    pub const MOST_TAGS: usize = 32;
    /// The most characters of a tag.
    pub const LONGEST_TAG: usize = 255;
}

/// When an engagement takes a further input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continues {
    /// While one of its inputs is being processed and no review is open (OpenAgentSpec).
    WhileOpen,
    /// Always: an engagement that has ended continues with it (Agent Protocol).
    Always,
}

/// Uniqueness (OJS unique jobs §3).
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Unique {
    /// Lower-case hex SHA-256 of the values that have to differ.
    pub fingerprint: String,
    /// How long after its acceptance a job still conflicts, in milliseconds; `None` is without end.
    pub period_ms: Option<i64>,
    /// The states in which a job conflicts.
    pub states: Vec<JobState>,
    /// The treatment of the new job.
    pub on_conflict: OnConflict,
}

/// The treatment of a job that would not be unique (OJS unique jobs §4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnConflict {
    /// It is refused.
    #[default]
    Reject,
    /// The other one is cancelled.
    Replace,
    /// The other one is cancelled, and this one keeps its time.
    ReplaceExceptSchedule,
    /// The existing job is returned in its place.
    Ignore,
}

/// How fast jobs may start (OJS rate limiting §3).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RateLimit {
    /// The key that shares the limit; `None` is the job's queue.
    pub key: Option<String>,
    /// At most this many are active.
    pub concurrency: Option<i64>,
    /// At most this many start per period.
    pub rate: Option<Rate>,
    /// The least time between two starts, in milliseconds.
    pub throttle_ms: Option<i64>,
    /// The treatment of a job that has to wait.
    pub on_limit: OnLimit,
}

/// Starts per period.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// At least 1.
    pub limit: i64,
    /// In milliseconds.
    pub period_ms: i64,
}

/// The treatment of a job whose limit is used up (OJS rate limiting §5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// It stays available and is skipped.
    #[default]
    Wait,
    /// It is scheduled for the time at which the limit allows it.
    Reschedule,
    /// It ends discarded.
    Drop,
}

impl OnLimit {
    /// Returns the word as on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Reschedule => "reschedule",
            Self::Drop => "drop",
        }
    }

    /// Reads [`OnLimit::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Wait, Self::Reschedule, Self::Drop].into_iter().find(|wish| wish.as_str() == text)
    }
}
