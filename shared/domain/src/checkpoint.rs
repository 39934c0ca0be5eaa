//! The durable fact that phase p of turn t is done, with the data for later phases.

mod bodies;

pub use bodies::{
    EmitBody, ExecBody, InferBody, InitBody, NormBody, PersistBody, PhaseBody, ResolBody, ResolvedTool,
    Shortage, ToolSource, Transaction, Transport, add_schemas,
};

use crate::{Phase, RawJson, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A checkpoint: append-only, at most one per (job, turn, phase). Its body is JSON: text when it is to be written
/// ([`NewCheckpoint`]), a value once it was read.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Checkpoint<B = Value> {
    /// 1-based within the engagement.
    pub turn: i64,
    /// The phase that is done.
    pub phase: Phase,
    /// The version of the body's shape, so that a newer worker can read what an older one wrote.
    pub version: i64,
    /// The data for later phases; its shape belongs to the phase.
    pub body: B,
    /// How long the phase took, in milliseconds.
    pub duration_ms: i64,
    /// Prompt tokens the provider counted in this phase.
    pub tokens_in: i64,
    /// Completion tokens the provider counted in this phase.
    pub tokens_out: i64,
    /// When the phase ended, by the worker's clock.
    pub at: Timestamp,
    /// The cost of the phase.
    #[serde(flatten)]
    pub spent: Spent,
}

/// A checkpoint that is to be written.
pub type NewCheckpoint = Checkpoint<RawJson>;

impl<B> Checkpoint<B> {
    /// Returns the same with another body.
    #[must_use]
    pub fn with<C>(self, body: impl FnOnce(B) -> C) -> Checkpoint<C> {
        let Self { turn, phase, version, body: old, duration_ms, tokens_in, tokens_out, at, spent } = self;
        Checkpoint { turn, phase, version, body: body(old), duration_ms, tokens_in, tokens_out, at, spent }
    }
}

/// The cost of a phase.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Spent {
    /// The prompt tokens among those of the phase that the provider had in its cache.
    pub tokens_cached: i64,
    /// Millionths of a currency.
    pub cost: i64,
    /// `provider/model`, when it called one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}
