//! The workers of a fleet, as they report themselves.

use serde::Serialize;
use turnstone_domain::Timestamp;

/// The report that a worker sends every [`WorkerBeat::EVERY_MS`].
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
    /// The queues it serves; `*` means all.
    pub queues: Vec<String>,
    /// The most turns at once.
    pub slots: i64,
    /// Turns in flight.
    pub busy: i64,
    /// Its state: whether it takes new jobs.
    pub state: WorkerState,
    /// When this run began.
    pub started_at: Timestamp,
    /// When it said this.
    pub seen_at: Timestamp,
    /// One of ours, or one over HTTP.
    pub kind: WorkerKind,
    /// The directive of an operator.
    pub directive: Option<Directive>,
}

impl WorkerBeat {
    /// The time from one beat to the next, in milliseconds.
    pub const EVERY_MS: i64 = 5_000;
    /// A worker that has missed three beats is taken for dead.
    pub const SILENT_MS: i64 = 3 * Self::EVERY_MS;
    /// A worker over HTTP is taken for dead after this time (OJS worker protocol §7).
    pub const HTTP_SILENT_MS: i64 = 30_000;

    /// Returns true when it has sent a beat lately.
    #[must_use]
    pub fn is_alive(&self, now: Timestamp) -> bool {
        let silent_ms = match self.kind {
            WorkerKind::Own => Self::SILENT_MS,
            WorkerKind::Http => Self::HTTP_SILENT_MS,
        };
        now.since(self.seen_at) < silent_ms
    }
}

/// Whose worker it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkerKind {
    /// Turnstone's own: it serves agent jobs.
    Own,
    /// Anybody's, over the OJS HTTP binding: it serves plain jobs.
    Http,
}

impl WorkerKind {
    /// The kind as in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Http => "http",
        }
    }

    /// Reads [`WorkerKind::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "own" => Some(Self::Own),
            "http" => Some(Self::Http),
            _ => None,
        }
    }
}

/// A directive to a worker, in the answer to its beat (OJS worker protocol §4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Directive {
    /// Fetch nothing more, and finish what it holds.
    Quiet,
    /// Stop, and give back what it cannot finish.
    Terminate,
}

impl Directive {
    /// The word on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quiet => "quiet",
            Self::Terminate => "terminate",
        }
    }

    /// Reads [`Directive::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Quiet, Self::Terminate].into_iter().find(|directive| directive.as_str() == text)
    }
}

/// The state of a worker: it takes new jobs, or it drains.
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
