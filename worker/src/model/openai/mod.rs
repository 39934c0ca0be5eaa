//! The `openai` provider: chat completions over HTTP, as OpenAI, vLLM, Ollama, llama.cpp and many gateways speak it.
//!
//! Streaming is asked for, so that a lost connection is noticed while the answer is written; a server that ignores the
//! wish and answers in one piece is understood as well. Nothing is retried here: the turn decides what a failure means.

mod assembly;
mod config;
mod failure;
mod request;
mod stream;
#[cfg(test)]
mod tests;
mod wire_names;

pub use config::{MaxTokensField, OpenAiConfig, ResponseFormat};

use crate::model::{Model, ModelAnswer, ModelError, ModelRequest};
use crate::tool::header::{check_headers, resolve_headers};
use crate::tool::{address_guard, outbound};
use assembly::Assembly;
use async_trait::async_trait;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::{Client, Response};
use url::Url;
use wire_names::WireNames;

/// The largest answer that is read, in bytes on the wire.
const ANSWER_CAP: usize = 4 * 1024 * 1024;

/// A chat completions endpoint.
#[derive(Debug)]
pub struct OpenAiModel {
    name: String,
    url: Url,
    config: OpenAiConfig,
    client: Client,
}

impl OpenAiModel {
    /// A provider called `name`. Its credentials are fetched once now, so that a missing one is told at start-up, and
    /// again for every call, so that they can be rotated.
    ///
    /// # Errors
    /// A sentence that names the key of the configuration that is wrong.
    pub fn new(name: &str, config: OpenAiConfig, client: Client) -> Result<Self, String> {
        let mut url =
            Url::parse(&config.base_url).map_err(|error| format!("base_url: not a URL: {error}"))?;
        address_guard::check_form(&url).map_err(|problem| format!("base_url: {problem}"))?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(["chat", "completions"]);
        }
        check_headers(&config.headers)?;
        let model = Self { name: name.to_owned(), url, config, client };
        model.headers()?;
        Ok(model)
    }

    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = resolve_headers(&self.config.headers)?;
        if let Some(key) = &self.config.api_key {
            let secret = key.resolve().map_err(|problem| format!("api_key: {problem}"))?;
            let mut value = HeaderValue::try_from(format!("Bearer {}", secret.expose()))
                .map_err(|_| format!("api_key: the secret {key} cannot stand in a header"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(headers)
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let headers = self.headers().map_err(|problem| ModelError::Refused(self.told(&problem)))?;
        let names = WireNames::of(request.tools.iter().map(|tool| tool.name.as_str()));
        let body = request::body(request, &self.config, &names);
        let sent = self.client.post(self.url.clone()).headers(headers).json(&body).send().await;
        let response =
            sent.map_err(|error| ModelError::Unavailable(self.told(&outbound::describe(&error))))?;
        let assembly = self.read(response).await?;
        assembly.finish(&names, &request.model).map_err(|problem| ModelError::Malformed(self.told(&problem)))
    }

    async fn read(&self, response: Response) -> Result<Assembly, ModelError> {
        let told = |problem: &str| self.told(problem);
        if !response.status().is_success() {
            return Err(failure::of_response(response, &told).await);
        }
        if outbound::media_type(&response) == "text/event-stream" {
            return stream::read(response, ANSWER_CAP, &told).await;
        }
        stream::read_whole(response, ANSWER_CAP, &told).await
    }

    fn told(&self, problem: &str) -> String {
        format!("provider {}: {problem}", self.name)
    }
}

#[async_trait]
impl Model for OpenAiModel {
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        tokio::time::timeout(request.timeout, self.ask(request)).await.unwrap_or_else(|_| {
            let ms = request.timeout.as_millis();
            Err(ModelError::Timeout(self.told(&format!("{} did not answer within {ms} ms", request.model))))
        })
    }
}
