//! The parts of a prompt beside the conversation (OSSA `spec.prompts`; RS-16, RS-17).

use serde::{Deserialize, Serialize};

/// The parts of a prompt beside the conversation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Prompts {
    /// Text below the role in the system prompt; its variables are filled in.
    pub system: Option<String>,
    /// Example exchanges that precede the conversation in every call and are no part of it.
    pub examples: Vec<Example>,
}

/// An example exchange.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Example {
    /// The user's message.
    pub input: String,
    /// The agent's answer.
    pub output: String,
    /// Background of the user's message, placed before it.
    pub context: Option<String>,
}
