//! The configuration of a tool: a section `[tools.<name>]` of `turnstone.toml`.

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
    /// For the model: the purpose of the tool, and when to use it.
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(default)]
    pub input_schema: SchemaText,
    /// The HTTP method. Default: POST.
    #[serde(default)]
    pub method: Method,
    /// The address of the calls. `{name}` in the path is replaced by the argument of that name,
    /// percent-encoded. All other arguments go into the query (GET, DELETE) or into a JSON body (POST, PUT,
    /// PATCH).
    pub url: String,
    /// Headers of every call.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderText>,
    /// The longest a call may take, in milliseconds. Default: 30000.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// True if the tool may be called twice with the same `Idempotency-Key` without a second effect. Such a
    /// call is repeated after an error and after a crash. After a crash, any other call waits for a reviewer.
    /// Default: `true` for GET and with `read_only`, else `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// True if the tool has no effect. Calls of such tools run in parallel. Default: `true` for GET unless
    /// `idempotent` is `false`, else `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Turns the address guard off for this tool, so that it may reach loopback and private networks.
    #[serde(default)]
    pub allow_private: bool,
    /// The price of a call, in the currency of the price table; counted in budgets in money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_per_call: Option<Amount>,
    /// Its circuit breaker. A section of the agent's document replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerConfig>,
    /// The most bytes of an answer; a larger one is a failure. Default: 1 MiB.
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
    /// Returns the schema of an object with any properties.
    fn default() -> Self {
        Self::Table(serde_json::json!({"type": "object"}))
    }
}

impl SchemaText {
    /// Returns the schema as a value.
    ///
    /// # Errors
    /// A sentence with the position where the text is not JSON.
    pub fn to_value(&self) -> Result<Value, String> {
        match self {
            Self::Text(text) => {
                serde_json::from_str(text).map_err(|error| format!("input_schema: not JSON: {error}"))
            }
            Self::Table(value) => Ok(value.clone()),
        }
    }
}

/// The HTTP method of a tool's calls.
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
    /// Returns true if the arguments are sent in a body.
    #[must_use]
    pub fn has_body(self) -> bool {
        matches!(self, Self::Post | Self::Put | Self::Patch)
    }

    /// Returns the method for the HTTP client.
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
    /// Returns a tool at this URL, with the defaults.
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

    /// Returns true if the tool counts as idempotent.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.idempotent.unwrap_or(self.method == Method::Get || self.read_only == Some(true))
    }

    /// Returns true if the tool counts as read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only.unwrap_or(self.method == Method::Get && self.idempotent != Some(false))
    }
}

/// Returns true if a tool may have this name.
#[must_use]
pub fn is_tool_name(name: &str) -> bool {
    (1..=253).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
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
