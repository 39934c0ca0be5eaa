//! A tool as `turnstone.toml` describes it, in a section `[tools.<name>]`.

use crate::breakers::BreakerConfig;
use crate::tool::header::HeaderText;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use turnstone_domain::budget::Amount;

/// An HTTP tool.
///
/// ```toml
/// [tools.web_search]
/// description = "Search the web"
/// input_schema = '{"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}'
/// method = "POST"
/// url = "https://search.example/v1/search"
/// headers = { Authorization = { secret = "env:SEARCH_KEY", prefix = "Bearer " } }
/// timeout_ms = 10000
/// idempotent = true
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolConfig {
    /// For the model: what the tool does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(default)]
    pub input_schema: SchemaText,
    /// POST unless said otherwise.
    #[serde(default)]
    pub method: Method,
    /// Where to call. `{name}` in the path stands for the argument of that name, percent-encoded. The arguments that
    /// are left over go into the query (GET, DELETE) or into a JSON body (POST, PUT, PATCH).
    pub url: String,
    /// Sent with every call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderText>,
    /// The longest a call may take, in milliseconds; 30000 unless said otherwise.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Whether the tool may be called twice with the same `Idempotency-Key` without a second effect. Such a call is repeated
    /// after an error and after a crash; any other is put before a reviewer after a crash. Default: `true` for GET and with
    /// `read_only`, else `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Whether the tool changes nothing. Calls of such tools run beside each other. Default: `true` for GET unless `idempotent` is
    /// `false`, else `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Turns the address guard off for this tool, so that it may reach loopback and private networks.
    #[serde(default)]
    pub allow_private: bool,
    /// What a call costs, in the currency of the price table; counted in budgets in money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_call: Option<Amount>,
    /// Its circuit breaker. A section of the agent's document replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerConfig>,
    /// A larger answer is a failure; 1 MiB unless said otherwise.
    #[serde(default = "default_max_response_bytes")]
    pub max_response_bytes: usize,
}

fn default_timeout_ms() -> u64 {
    30_000
}

fn default_max_response_bytes() -> usize {
    1024 * 1024
}

/// A JSON Schema, as JSON text or as a TOML table.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SchemaText {
    /// JSON in a string.
    Text(String),
    /// A table.
    Table(Value),
}

impl Default for SchemaText {
    /// An object with any properties.
    fn default() -> Self {
        Self::Table(serde_json::json!({"type": "object"}))
    }
}

impl SchemaText {
    /// The schema as a value.
    ///
    /// # Errors
    /// A sentence that says where the text is not JSON.
    pub fn to_value(&self) -> Result<Value, String> {
        match self {
            Self::Text(text) => {
                serde_json::from_str(text).map_err(|error| format!("input_schema: not JSON: {error}"))
            }
            Self::Table(value) => Ok(value.clone()),
        }
    }
}

/// How a tool is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// Arguments in the query.
    Get,
    /// Arguments as a JSON body.
    #[default]
    Post,
    /// Arguments as a JSON body.
    Put,
    /// Arguments as a JSON body.
    Patch,
    /// Arguments in the query.
    Delete,
}

impl Method {
    /// Whether the arguments travel in a body.
    #[must_use]
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }

    /// The method for the HTTP client.
    #[must_use]
    pub fn to_http(self) -> reqwest::Method {
        match self {
            Self::Get => reqwest::Method::GET,
            Self::Post => reqwest::Method::POST,
            Self::Put => reqwest::Method::PUT,
            Self::Patch => reqwest::Method::PATCH,
            Self::Delete => reqwest::Method::DELETE,
        }
    }
}

impl ToolConfig {
    /// A tool at this URL, with the defaults.
    #[must_use]
    pub fn at(url: String) -> Self {
        Self {
            description: String::new(),
            input_schema: SchemaText::default(),
            method: Method::default(),
            url,
            headers: BTreeMap::new(),
            timeout_ms: default_timeout_ms(),
            idempotent: None,
            read_only: None,
            allow_private: false,
            cost_per_call: None,
            breaker: None,
            max_response_bytes: default_max_response_bytes(),
        }
    }

    /// Whether the tool counts as idempotent.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.idempotent.unwrap_or(self.method == Method::Get || self.read_only == Some(true))
    }

    /// Whether the tool counts as one that changes nothing.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only.unwrap_or(self.method == Method::Get && self.idempotent != Some(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_careful_ones() {
        let config: ToolConfig =
            serde_json::from_str(r#"{"description": "d", "url": "https://a.example/"}"#).unwrap();
        assert_eq!(
            (config.method, config.timeout_ms, config.max_response_bytes),
            (Method::Post, 30_000, 1 << 20)
        );
        assert!(!config.is_idempotent() && !config.allow_private);
        let get = ToolConfig { method: Method::Get, ..config.clone() };
        assert!(get.is_idempotent() && get.is_read_only() && !config.is_read_only());
        let reads = ToolConfig { read_only: Some(true), ..config };
        assert!(reads.is_idempotent() && reads.is_read_only());
        let writes = ToolConfig { idempotent: Some(false), ..get };
        assert!(!writes.is_idempotent() && !writes.is_read_only());
    }

    #[test]
    fn unknown_keys_and_methods_are_refused() {
        let read = |json: &str| serde_json::from_str::<ToolConfig>(json).map_err(|error| error.to_string());
        let error = read(r#"{"description": "d", "url": "u", "timeout": 5}"#).unwrap_err();
        assert!(error.contains("timeout") && error.contains("timeout_ms"), "{error}");
        assert!(read(r#"{"description": "d", "url": "u", "method": "BREW"}"#).is_err());
        assert!(
            read(r#"{"description": "d", "url": "u", "headers": {"A": {"secret": "sk-live-1"}}}"#).is_err()
        );
    }
}
