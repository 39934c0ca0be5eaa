//! The rules for an agent's state (OSSA `spec.state`, OSSA §3).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The rules for an agent's state.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StateOptions {
    /// The lifetime of the state.
    pub mode: StateMode,
    /// The visibility of concurrent turns.
    pub isolation: Isolation,
    /// The lifetime of a key that is set without one, in seconds; `None` is without end.
    pub ttl_seconds: Option<i64>,
    /// How long keys are kept after they were written, and the conversation after its end, in milliseconds
    /// (`storage.retention`); `None` leaves it to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_ms: Option<i64>,
    /// The storage that the manifest names. Turnstone keeps state in its own store, so the name is shown and has no
    /// effect.
    pub storage: Option<String>,
}

/// The longest that a conversation is kept after its end, in milliseconds: a hundred years.
pub const LONGEST_RETENTION_MS: i64 = 36_500 * 86_400_000;

impl StateOptions {
    /// Returns the time for which the conversation is kept after its end, in milliseconds. Longer times in a document
    /// are capped.
    #[must_use]
    pub fn kept_ms(&self) -> Option<i64> {
        self.retention_ms.map(|ms| ms.clamp(0, LONGEST_RETENTION_MS))
    }
}

/// The lifetime of the state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateMode {
    /// Not at all.
    #[default]
    Stateless,
    /// As long as the engagement.
    Session,
    /// Across the engagements of one user with this agent.
    LongRunning,
}

/// The visibility of turns that run at the same time, and the outcome when they change the same key (OSSA §3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Writes take effect at once and are never rolled back.
    ReadUncommitted,
    /// Each read sees what is committed at that moment; the last one to commit wins.
    ReadCommitted,
    /// All reads of a turn see the same; of two turns that write the same key the second one is run again.
    RepeatableRead,
    /// As if the turns that use state ran one after the other.
    #[default]
    Serializable,
}

impl Isolation {
    /// All levels.
    pub const ALL: [Self; 4] =
        [Self::ReadUncommitted, Self::ReadCommitted, Self::RepeatableRead, Self::Serializable];

    /// Returns the level as in a manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "read_uncommitted",
            Self::ReadCommitted => "read_committed",
            Self::RepeatableRead => "repeatable_read",
            Self::Serializable => "serializable",
        }
    }
}
