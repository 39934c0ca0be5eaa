//! The reasoning that a manifest describes (OSSA `spec.reasoning`). Every agent works as with the strategy `react`: a
//! step is a turn, and tool calls are its actions.

use serde::{Deserialize, Serialize};

/// The strategy of every agent.
pub const STRATEGY: &str = "react";

/// The bounds of an agent's reasoning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reasoning {
    /// The most steps before an answer; in the last one no tool is offered.
    pub max_steps: u32,
}
