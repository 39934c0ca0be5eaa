//! The durable fact that phase p of turn t is done, with what later phases need.

use crate::{Phase, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A checkpoint: append-only, at most one per (job, turn, phase).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    /// 1-based within the engagement.
    pub turn: i64,
    /// The phase that is done.
    pub phase: Phase,
    /// The version of the body's shape, so that a newer worker can read what an older one wrote.
    pub version: i64,
    /// What later phases need; its shape belongs to the phase.
    pub body: Value,
    /// How long the phase took, in milliseconds.
    pub duration_ms: i64,
    /// Prompt tokens the provider counted in this phase.
    pub tokens_in: i64,
    /// Completion tokens the provider counted in this phase.
    pub tokens_out: i64,
    /// When the phase ended, by the worker's clock.
    pub at: Timestamp,
    /// What the phase paid for.
    #[serde(flatten)]
    pub spent: Spent,
}

/// What a phase paid for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// The prompt tokens among those of the phase that the provider had in its cache.
    pub tokens_cached: i64,
    /// Millionths of a currency.
    pub cost: i64,
    /// `provider/model`, when it asked one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}
