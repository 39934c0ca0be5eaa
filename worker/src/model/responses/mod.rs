//! The `openai-responses` provider: OpenAI's responses API over HTTP.
//!
//! The provider stores nothing (`store: false`): every request holds the whole conversation. The provider
//! retries nothing: the turn decides how to treat a failure.

mod assembly;
mod config;
mod request;
#[cfg(test)]
mod tests;

pub use config::ResponsesConfig;

use crate::model::http::{Endpoint, ProviderAddress, WireNames};
use crate::model::{Model, ModelAnswer, ModelError, ModelRequest};
use crate::oci::OciSigner;
use assembly::ResponsesAssembly;
use async_trait::async_trait;
use reqwest::Client;
use serde_json::{Map, Value};
use std::sync::Arc;
use turnstone_specs::agent_spec::model::RetryPolicy;
use turnstone_telemetry::Secret;

/// An endpoint of the responses API.
#[derive(Debug)]
pub struct ResponsesModel {
    endpoint: Endpoint,
    config: ResponsesConfig,
    /// Parameters that are sent with every call beside those of the request.
    more: Map<String, Value>,
}

impl ResponsesModel {
    /// Returns a provider called `name`. Credentials are fetched once now, so that a missing one is reported
    /// at start-up. They are fetched again for every call, so that they can be rotated.
    ///
    /// # Errors
    /// A sentence that names the key of the configuration that is wrong.
    pub fn new(name: &str, config: ResponsesConfig, client: Client) -> Result<Self, String> {
        let place = ProviderAddress {
            base_url: &config.base_url,
            path: &["responses"],
            key_header: ("authorization", "Bearer "),
            api_key: config.api_key.as_ref(),
            headers: &config.headers,
            own_headers: &[],
            timeout_ms: config.timeout_ms,
        };
        Ok(Self { endpoint: Endpoint::new(name, place, client)?, config, more: Map::new() })
    }

    /// The same with a key that came by its value, and with these parameters in every call.
    #[must_use]
    pub fn with(self, key: Option<Secret>, more: Map<String, Value>) -> Self {
        Self { endpoint: self.endpoint.with_key(key), more, ..self }
    }

    /// The same with the retries of a document.
    #[must_use]
    pub fn with_retries(self, retries: Option<RetryPolicy>) -> Self {
        Self { endpoint: self.endpoint.with_retries(retries), ..self }
    }

    /// The same with signed requests.
    #[must_use]
    pub fn signed_by(self, signer: Arc<OciSigner>) -> Self {
        Self { endpoint: self.endpoint.signed_by(signer), ..self }
    }
}

#[async_trait]
impl Model for ResponsesModel {
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let names = WireNames::of(request.tools.iter().map(|tool| tool.name.as_str()));
        let mut body = request::body(request, &self.config, &names);
        if let Value::Object(body) = &mut body {
            body.extend(self.more.clone());
        }
        let assembly: ResponsesAssembly =
            self.endpoint.ask(&body, request.timeout, &request.listener).await?;
        assembly.finish(&names, &request.model).map_err(|problem| self.endpoint.malformed(&problem))
    }

    fn takes_pictures(&self) -> bool {
        self.config.takes_pictures()
    }
}
