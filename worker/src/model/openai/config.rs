//! The configuration of an OpenAI-compatible provider.

use crate::model::http::http_config;
use serde::{Deserialize, Serialize};

http_config! {
    /// A section `[providers.<name>]` with `kind = "openai"`. The key is sent as `Authorization: Bearer …`.
    OpenAiConfig at "https://api.openai.com/v1" {
        /// The form in which the API receives the demand.
        response_format: ResponseFormat,
        /// The provider's name for the bound on the answer.
        max_tokens_field: MaxTokensField,
    }
}

/// The form of `response_format` that a provider supports. The answer is validated in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseFormat {
    /// A JSON Schema (OpenAI, vLLM, llama.cpp, Ollama).
    #[default]
    JsonSchema,
    /// Any JSON object; no schema.
    JsonObject,
}

/// The name of the bound on the answer's tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// Supported by nearly every provider.
    #[default]
    MaxTokens,
    /// Required by OpenAI's reasoning models.
    MaxCompletionTokens,
}
