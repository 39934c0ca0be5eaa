//! The way in which a demanded form reaches a model.

use serde::{Deserialize, Serialize};

/// The way in which a demanded form reaches the model. In any case the prompt holds it, and the answer is
/// validated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// Sent to the provider too, which then constrains the model's output.
    #[default]
    Native,
    /// In the prompt only, for servers that do not support it, or refuse it together with tools.
    Prompt,
}
