//! Models that a document of Agent Spec names by their address, within what `[tool_policy]` allows.

use super::Model;
use super::cloud::VertexModel;
pub use super::cloud::{ServiceAccount, oci as oci_model};
use super::http::{Api, HttpModel, HttpProviderConfig, MaxTokensField, MaxTokensFields};
use super::openai::ChatCompletions;
use super::responses::Responses;
use reqwest::Client;
use serde_json::{Map, Value};
use std::sync::Arc;
use turnstone_domain::Clock;
use turnstone_specs::agent_spec::model::{GeminiAuthConfig, LlmConfig, LlmKind};
use turnstone_telemetry::Secret;
use url::Url;

/// Parameters that the request has a place of its own for.
const OWN: [&str; 2] = ["temperature", "top_p"];
/// The names of the bound on the answer in documents.
pub const BOUNDS: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

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
        (LlmKind::GeminiConfig(GeminiAuthConfig::GeminiVertexAIAuthConfig { location, .. }), _) => {
            let region = if location == "global" { String::new() } else { format!("{location}-") };
            return Url::parse(&format!("https://{region}aiplatform.googleapis.com"))
                .map_err(|error| format!("the `location` of `{}` makes no URL: {error}", config.head.name));
        }
        (LlmKind::OciGenAiConfig { client_config, .. }, _) => {
            return Url::parse(&client_config.service_endpoint).map_err(|error| {
                format!("the `service_endpoint` of `{}` is no URL: {error}", config.head.name)
            });
        }
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
    let (more, retries) = (parameters(config), config.retry_policy.clone());
    let api: Box<dyn Api> = match config.api_type.as_deref() {
        Some("responses") => Box::new(Responses),
        _ => {
            let own = ChatCompletions::default().base_url();
            let max_tokens_field =
                match config.default_generation_parameters.contains_key("max_completion_tokens") {
                    true => MaxTokensFields::One(MaxTokensField::MaxCompletionTokens),
                    false => MaxTokensFields::of_address(address.as_str(), own),
                };
            Box::new(ChatCompletions { max_tokens_field, ..ChatCompletions::default() })
        }
    };
    let settings = HttpProviderConfig { base_url: Some(address.to_string()), ..Default::default() };
    Ok(Arc::new(HttpModel::new(name, api, settings, client)?.with(key, more).with_retries(retries)))
}

/// The parameters that the request has no place of its own for.
pub fn parameters(config: &LlmConfig) -> Map<String, Value> {
    let more = config
        .default_generation_parameters
        .iter()
        .filter(|(name, _)| !OWN.contains(&name.as_str()) && !BOUNDS.contains(&name.as_str()));
    more.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// A model of Vertex AI at its address.
///
/// # Errors
/// A sentence: neither the document nor the credentials name a project.
pub fn vertex_model(
    name: &str,
    config: &LlmConfig,
    (address, client): (&Url, Client),
    account: ServiceAccount,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Model>, String> {
    let LlmKind::GeminiConfig(GeminiAuthConfig::GeminiVertexAIAuthConfig { project_id, location, .. }) =
        &config.kind
    else {
        return Err(format!("the model `{}` is none of Vertex AI", config.head.name));
    };
    let project = project_id.as_ref().or(account.project.as_ref());
    let project = project.ok_or_else(|| format!("the model `{}` has no `project_id`", config.head.name))?;
    let address = address.as_str().trim_end_matches('/');
    let base_url = format!("{address}/v1/projects/{project}/locations/{location}/endpoints/openapi");
    Ok(Arc::new(VertexModel::new(name, base_url, account, client, parameters(config), clock)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::http::fixture::{replay, request};
    use crate::tool::outbound;
    use serde_json::json;
    use turnstone_specs::agent_spec::model::Head;

    fn config(api_type: &str, url: &str) -> LlmConfig {
        let parameters = json!({"seed": 7, "temperature": 0.5});
        LlmConfig {
            head: Head { id: "l".into(), name: "l".into(), description: None, metadata: json!({}) },
            model_id: "m".into(),
            provider: None,
            api_type: Some(api_type.into()),
            url: Some(url.into()),
            api_key: None,
            default_generation_parameters: parameters.as_object().cloned().unwrap(),
            retry_policy: None,
            kind: LlmKind::LlmConfig { api_provider: None },
        }
    }

    /// AGS-41: the API type chooses the path, and other parameters are sent as they are.
    #[tokio::test]
    async fn the_api_type_chooses_the_path() {
        for (api_type, path) in [("chat_completions", "/v1/chat/completions"), ("responses", "/v1/responses")]
        {
            let server = replay(200, "{}").await;
            let config = config(api_type, &server.base_url);
            let address = address(&config).unwrap();
            let model = model("p", &config, &address, outbound::open_client().unwrap()).unwrap();
            // The answer is empty; only the request matters.
            assert!(model.answer(&request()).await.is_err());
            let (seen, _, body) = server.seen(0);
            assert_eq!((seen.as_str(), &body["seed"], body.get("temperature")), (path, &json!(7), None));
        }
    }

    #[test]
    fn addresses_have_a_scheme_and_a_version() {
        let at = |url: &str| address(&config("chat_completions", url)).unwrap().to_string();
        assert_eq!(at("model:8000"), "http://model:8000/v1");
        assert_eq!(at("https://m.example/v1/chat/completions"), "https://m.example/v1");
        assert_eq!(at("https://m.example/v1/responses/"), "https://m.example/v1");
        let gemini = LlmKind::GeminiConfig(GeminiAuthConfig::GeminiAIStudioAuthConfig { api_key: None });
        let config = LlmConfig { kind: gemini, url: None, ..config("chat_completions", "") };
        assert_eq!(address(&config).unwrap().as_str(), GEMINI);
    }
}
