//! The configuration of a provider of the responses API.

use crate::breakers::BreakerConfig;
use crate::model::structured_output::StructuredOutput;
use crate::tool::header::HeaderText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use turnstone_telemetry::SecretRef;

/// A section `[providers.<name>]` with `kind = "openai-responses"`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResponsesConfig {
    /// The address up to and including the version, without `/responses`. Default:
    /// `https://api.openai.com/v1`.
    #[serde(default = "openai")]
    pub base_url: String,
    /// Sent as `Authorization: Bearer …`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretRef>,
    /// The way in which a demanded form reaches the model: through the provider's API, or in the prompt only.
    #[serde(default)]
    pub structured_output: StructuredOutput,
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

impl ResponsesConfig {
    /// Returns true if the models take the pictures of tools.
    pub(super) fn takes_pictures(&self) -> bool {
        self.pictures.unwrap_or_else(|| self.base_url == openai())
    }
}

impl Default for ResponsesConfig {
    /// Returns the configuration of OpenAI itself, without a key.
    fn default() -> Self {
        Self {
            base_url: openai(),
            api_key: None,
            structured_output: StructuredOutput::default(),
            headers: BTreeMap::new(),
            pictures: None,
            concurrency: None,
            breaker: None,
            timeout_ms: None,
        }
    }
}

fn openai() -> String {
    "https://api.openai.com/v1".to_owned()
}
