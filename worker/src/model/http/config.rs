//! The configuration of a provider over HTTP.

use crate::breakers::BreakerConfig;
use crate::tool::header::HeaderText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use turnstone_telemetry::SecretRef;

/// A section `[providers.<name>]` of a provider over HTTP.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpProviderConfig {
    /// The address up to and including the version. Default: the address of the API's own provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The key; local servers need none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretRef>,
    /// The way in which a demanded form of the answer reaches the model.
    pub structured_output: StructuredOutput,
    /// `openai` only: the form in which the API receives the demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// `openai` only: the provider's name for the bound on the answer; one for all models, or by the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_field: Option<MaxTokensFields>,
    /// `openai-responses` only: true if the provider keeps answers, so that a paid one is fetched after a crash.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub store: bool,
    /// Headers of every call.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderText>,
    /// True if the models take pictures from tools. Default: true only if `base_url` is the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pictures: Option<bool>,
    /// The most calls that one worker process makes at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// The circuit breaker of its models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerConfig>,
    /// The longest one call may take, in milliseconds, if that is less than the agent allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

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
    /// No bound is sent.
    None,
}

/// The names of the bound.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MaxTokensFields {
    /// One name.
    One(MaxTokensField),
    /// Names by the model; `*` is that of all others.
    ByModel(BTreeMap<String, MaxTokensField>),
}

impl MaxTokensFields {
    /// Returns the default for an address of chat completions. OpenAI's reasoning models refuse the older name, which nearly
    /// every other server needs.
    #[must_use]
    pub fn of_address(base_url: &str, own: &str) -> Self {
        Self::One(match base_url.trim_end_matches('/') == own {
            true => MaxTokensField::MaxCompletionTokens,
            false => MaxTokensField::MaxTokens,
        })
    }

    /// Returns the name for a model.
    #[must_use]
    pub fn of(&self, model: &str) -> MaxTokensField {
        match self {
            Self::One(field) => *field,
            Self::ByModel(fields) => {
                fields.get(model).or_else(|| fields.get("*")).copied().unwrap_or_default()
            }
        }
    }
}

impl Default for MaxTokensFields {
    fn default() -> Self {
        Self::One(MaxTokensField::default())
    }
}
