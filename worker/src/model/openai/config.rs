//! What the configuration says about an OpenAI-compatible provider.

use crate::breakers::BreakerConfig;
use crate::model::providers::StructuredOutput;
use crate::tool::header::HeaderText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use turnstone_telemetry::SecretRef;

/// A section `[providers.<name>]` with `kind = "openai"`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// Up to and including the version, without `/chat/completions`; `https://api.openai.com/v1` unless said otherwise.
    #[serde(default = "openai")]
    pub base_url: String,
    /// Sent as `Authorization: Bearer …`; local servers need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretRef>,
    /// Whether a demanded form of the answer is told to the provider, or only to the model.
    #[serde(default)]
    pub structured_output: StructuredOutput,
    /// How it is told to the provider.
    #[serde(default)]
    pub response_format: ResponseFormat,
    /// How the provider spells the bound on the answer.
    #[serde(default)]
    pub max_tokens_field: MaxTokensField,
    /// Sent with every call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderText>,
    /// Whether the models take the pictures that tools answer with. Left out: whether `base_url` is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pictures: Option<bool>,
    /// The most calls that one worker process makes at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// The circuit breaker of its models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerConfig>,
    /// The longest one call may take, in milliseconds, if that is less than the agent allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl OpenAiConfig {
    /// Whether the models take the pictures of tools.
    pub(super) fn takes_pictures(&self) -> bool {
        self.pictures.unwrap_or_else(|| self.base_url == openai())
    }
}

fn openai() -> String {
    "https://api.openai.com/v1".to_owned()
}

impl Default for OpenAiConfig {
    /// OpenAI itself, without a key.
    fn default() -> Self {
        Self {
            base_url: openai(),
            api_key: None,
            structured_output: StructuredOutput::default(),
            response_format: ResponseFormat::default(),
            max_tokens_field: MaxTokensField::default(),
            headers: BTreeMap::new(),
            pictures: None,
            concurrency: None,
            breaker: None,
            timeout_ms: None,
        }
    }
}

/// What of `response_format` a provider offers. Whatever it is, the answer is validated when it comes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResponseFormat {
    /// A JSON Schema (OpenAI, vLLM, llama.cpp, Ollama).
    #[default]
    JsonSchema,
    /// Only "some JSON object".
    JsonObject,
}

/// The name of the bound on the answer's tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// Understood nearly everywhere.
    #[default]
    MaxTokens,
    /// What OpenAI's reasoning models demand.
    MaxCompletionTokens,
}
