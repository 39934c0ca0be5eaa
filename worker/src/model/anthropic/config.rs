//! The configuration of a provider of the messages API.

use crate::breakers::BreakerConfig;
use crate::model::structured_output::StructuredOutput;
use crate::tool::header::HeaderText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use turnstone_telemetry::SecretRef;

/// A section `[providers.<name>]` with `kind = "anthropic"`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnthropicConfig {
    /// The address up to and including the version, without `/messages`. Default:
    /// `https://api.anthropic.com/v1`.
    #[serde(default = "anthropic")]
    pub base_url: String,
    /// Sent as `x-api-key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key: Option<SecretRef>,
    /// The way in which a demanded schema reaches the model: through the provider's API, or in the prompt
    /// only.
    #[serde(default)]
    pub structured_output: StructuredOutput,
    /// Headers of every call; `anthropic-version` too, if it is not to be 2023-06-01.
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

impl AnthropicConfig {
    /// Returns true if the models take the pictures of tools.
    pub(super) fn takes_pictures(&self) -> bool {
        self.pictures.unwrap_or_else(|| self.base_url == anthropic())
    }
}

fn anthropic() -> String {
    "https://api.anthropic.com/v1".to_owned()
}
