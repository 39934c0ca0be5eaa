//! The limits of an engagement: turns, tokens, time and depth.

use serde::{Deserialize, Serialize};

/// Limits of an engagement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Limits {
    /// The most turns an engagement may take (OSSA §6).
    pub max_turns: u32,
    /// The most consecutive turns that call tools (OSSA §4); `None` leaves it to `max_turns`.
    pub max_tool_turns: Option<u32>,
    /// The most tokens the engagement may spend; `None` is unlimited.
    pub token_budget: Option<i64>,
    /// The most tokens that the model calls of one turn may use, prompts and answers; `None` is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_turn: Option<i64>,
    /// The longest one model call may take with all its fallbacks and retries, in milliseconds.
    pub model_timeout_ms: Option<u64>,
    /// The longest an attempt of a job may take, in milliseconds, with all its turns (OSSA
    /// `safety.guardrails.max_execution_time_seconds`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_timeout_ms: Option<u64>,
    /// The deepest delegation, at most [`MAX_DELEGATION_DEPTH`].
    pub max_delegation_depth: u32,
}

/// The deepest delegation chain that is ever allowed (agent extension §2.3).
pub const MAX_DELEGATION_DEPTH: u32 = 10;

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 50,
            max_tool_turns: None,
            token_budget: None,
            max_tokens_per_turn: None,
            model_timeout_ms: None,
            attempt_timeout_ms: None,
            max_delegation_depth: MAX_DELEGATION_DEPTH,
        }
    }
}
