//! Models that a document of Agent Spec names by their address, within what `[tool_policy]` allows.

use super::Model;
use super::openai::{OpenAiConfig, OpenAiModel};
use reqwest::Client;
use serde_json::Value;
use turnstone_specs::agent_spec::model::{LlmConfig, LlmKind};
use turnstone_telemetry::Secret;
use url::Url;

/// Parameters that the request has a place of its own for.
const OWN: [&str; 3] = ["max_tokens", "temperature", "top_p"];

/// The address of a model: with a scheme and a version, without the path of the call.
///
/// # Errors
/// A sentence: there is none, or it is no URL.
pub fn address(config: &LlmConfig) -> Result<Url, String> {
    let named = match (&config.kind, &config.url) {
        (LlmKind::OpenAiConfig, _) => "https://api.openai.com/v1",
        (_, Some(url)) => url.as_str(),
        (_, None) => return Err(format!("the model `{}` has no `url`", config.head.name)),
    };
    let with_scheme = if named.contains("://") { named.to_owned() } else { format!("http://{named}") };
    let base = with_scheme.trim_end_matches('/').trim_end_matches("/chat/completions");
    let base = if base.ends_with("/v1") { base.to_owned() } else { format!("{base}/v1") };
    Url::parse(&base)
        .map_err(|error| format!("the `url` of the model `{}` is no URL: {error}", config.head.name))
}

/// The model of a configuration at its address; `name` is the name of its provider.
///
/// # Errors
/// A sentence that says which field is wrong.
pub fn model(name: &str, config: &LlmConfig, address: &Url, client: Client) -> Result<impl Model, String> {
    let key = config.api_key.as_ref().and_then(|key| key.reveal()).and_then(Value::as_str);
    let more = config.default_generation_parameters.iter().filter(|(name, _)| !OWN.contains(&name.as_str()));
    let more = more.map(|(name, value)| (name.clone(), value.clone())).collect();
    let settings = OpenAiConfig { base_url: address.to_string(), ..OpenAiConfig::default() };
    Ok(OpenAiModel::new(name, settings, client)?.with(key.map(Secret::given), more))
}
