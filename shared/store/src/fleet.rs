//! The workers of a fleet, as they report themselves.

use serde::Serialize;
use turnstone_domain::Timestamp;

/// What a worker says of itself, every [`WorkerBeat::EVERY_MS`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct WorkerBeat {
    /// Its name, unique in the fleet.
    pub name: String,
    /// This run of it: made anew at every start.
    pub instance: String,
    /// The machine it runs on.
    pub host: String,
    /// Its process there.
    pub pid: i64,
    /// The version of Turnstone.
    pub version: String,
    /// The queues it serves; `*` stands for all.
    pub queues: Vec<String>,
    /// The most turns at once.
    pub slots: i64,
    /// Turns in flight.
    pub busy: i64,
    /// Whether it takes on new jobs.
    pub state: WorkerState,
    /// When this run began.
    pub started_at: Timestamp,
    /// When it said this.
    pub seen_at: Timestamp,
}

impl WorkerBeat {
    /// The time from one beat to the next, in milliseconds.
    pub const EVERY_MS: i64 = 5_000;
    /// A worker that has missed three beats is taken for dead.
    pub const SILENT_MS: i64 = 3 * Self::EVERY_MS;

    /// Whether it has been heard of lately.
    #[must_use]
    pub fn is_alive(&self, now: Timestamp) -> bool {
        now.since(self.seen_at) < Self::SILENT_MS
    }
}

/// Whether a worker takes on new jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerState {
    /// It claims.
    Running,
    /// It claims nothing more and waits for its turns.
    Draining,
}

impl WorkerState {
    /// The state as in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Draining => "draining",
        }
    }

    /// Reads [`WorkerState::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Running, Self::Draining].into_iter().find(|state| state.as_str() == text)
    }
}
