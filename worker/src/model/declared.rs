//! Models that a document of Agent Spec names by their address, within what `[tool_policy]` allows.

use super::Model;
use super::openai::{OpenAiConfig, OpenAiModel};
use super::responses::{ResponsesConfig, ResponsesModel};
use reqwest::Client;
use serde_json::Value;
use std::sync::Arc;
use turnstone_specs::agent_spec::model::{LlmConfig, LlmKind};
use turnstone_telemetry::Secret;
use url::Url;

/// Parameters that the request has a place of its own for.
const OWN: [&str; 3] = ["max_tokens", "temperature", "top_p"];

/// The address of Gemini's API in the form of OpenAI's, as Google documents it.
const GEMINI: &str = "https://generativelanguage.googleapis.com/v1beta/openai";
/// The address of OpenAI's API.
const OPENAI: &str = "https://api.openai.com/v1";

/// Returns true if a configuration names a provider of this server and no address of its own.
#[must_use]
pub fn is_of_server(config: &LlmConfig) -> bool {
    matches!(config.kind, LlmKind::LlmConfig { .. }) && config.url.is_none()
}

/// The address of a model: with a scheme and a version, without the path of the call.
///
/// # Errors
/// A sentence: there is none, or it is no URL.
pub fn address(config: &LlmConfig) -> Result<Url, String> {
    let named = match (&config.kind, &config.url) {
        (LlmKind::OpenAiConfig, _) => OPENAI,
        (LlmKind::GeminiConfig(_), _) => GEMINI,
        (_, Some(url)) => url.as_str(),
        (_, None) => return Err(format!("the model `{}` has no `url`", config.head.name)),
    };
    let with_scheme = if named.contains("://") { named.to_owned() } else { format!("http://{named}") };
    let base = with_scheme.trim_end_matches('/');
    let base = base.trim_end_matches("/chat/completions").trim_end_matches("/responses");
    let is_versioned = base.ends_with("/v1") || base == GEMINI;
    let base = if is_versioned { base.to_owned() } else { format!("{base}/v1") };
    Url::parse(&base)
        .map_err(|error| format!("the `url` of the model `{}` is no URL: {error}", config.head.name))
}

/// The model of a configuration at its address; `name` is the name of its provider.
///
/// # Errors
/// A sentence that says which field is wrong.
pub fn model(
    name: &str,
    config: &LlmConfig,
    address: &Url,
    client: Client,
) -> Result<Arc<dyn Model>, String> {
    let key = config.key().and_then(|key| key.reveal()).and_then(Value::as_str).map(Secret::given);
    let more = config.default_generation_parameters.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
    let more = more.map(|(name, value)| (name.clone(), value.clone())).collect();
    let base_url = address.to_string();
    if config.api_type.as_deref() == Some("responses") {
        let settings = ResponsesConfig { base_url, ..ResponsesConfig::default() };
        return Ok(Arc::new(ResponsesModel::new(name, settings, client)?.with(key, more)));
    }
    let settings = OpenAiConfig { base_url, ..OpenAiConfig::default() };
    Ok(Arc::new(OpenAiModel::new(name, settings, client)?.with(key, more)))
}
