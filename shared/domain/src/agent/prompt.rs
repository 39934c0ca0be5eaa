//! What is said to the model beside the conversation (OSSA `spec.prompts`; RS-16, RS-17).

use serde::{Deserialize, Serialize};

/// What is said beside the conversation.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Prompts {
    /// Stands below the role in the system prompt; its variables are filled in.
    pub system: Option<String>,
    /// Exchanges that go before the conversation in every call and are no part of it.
    pub examples: Vec<Example>,
}

/// An exchange as it should be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Example {
    /// What is asked.
    pub input: String,
    /// What is answered.
    pub output: String,
    /// What the one who asks knows; goes before the question.
    pub context: Option<String>,
}
