//! The configuration of an OpenAI-compatible provider.

use crate::breakers::BreakerConfig;
use crate::model::structured_output::StructuredOutput;
use crate::tool::header::HeaderText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use turnstone_telemetry::SecretRef;

/// A section `[providers.<name>]` with `kind = "openai"`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAiConfig {
    /// The address up to and including the version, without `/chat/completions`. Default:
    /// `https://api.openai.com/v1`.
    #[serde(default = "openai")]
    pub base_url: String,
    /// Sent as `Authorization: Bearer …`; local servers need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretRef>,
    /// The way in which a demanded form reaches the model: through the provider's API, or in the prompt only.
    #[serde(default)]
    pub structured_output: StructuredOutput,
    /// The form in which the API receives the demand.
    #[serde(default)]
    pub response_format: ResponseFormat,
    /// The provider's name for the bound on the answer.
    #[serde(default)]
    pub max_tokens_field: MaxTokensField,
    /// Headers of every call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderText>,
    /// True if the models take pictures from tools. Default: true only if `base_url` is the default.
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
    /// Returns true if the models take the pictures of tools.
    pub(super) fn takes_pictures(&self) -> bool {
        self.pictures.unwrap_or_else(|| self.base_url == openai())
    }
}

fn openai() -> String {
    "https://api.openai.com/v1".to_owned()
}

impl Default for OpenAiConfig {
    /// Returns the configuration of OpenAI itself, without a key.
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
