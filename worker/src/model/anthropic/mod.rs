//! The `anthropic` provider: Anthropic's messages API over HTTP.
//!
//! A demanded schema is sent as a tool that takes the answer, because every model of this provider can be
//! made to call a tool. The call is read as the text of the answer. The provider retries nothing: the turn
//! decides how to treat a failure.

mod assembly;
mod config;
mod demand;
mod request;
#[cfg(test)]
mod tests;

pub use config::AnthropicConfig;

use crate::model::http::{Endpoint, ProviderAddress};
use crate::model::{Model, ModelAnswer, ModelError, ModelRequest};
use assembly::AnthropicAssembly;
use async_trait::async_trait;
use demand::Demand;
use reqwest::Client;

/// An endpoint of the messages API.
#[derive(Debug)]
pub struct AnthropicModel {
    endpoint: Endpoint,
    config: AnthropicConfig,
}

impl AnthropicModel {
    /// Returns a provider called `name`. Credentials are fetched once now, so that a missing one is reported
    /// at start-up. They are fetched again for every call, so that they can be rotated.
    ///
    /// # Errors
    /// A sentence that names the key of the configuration that is wrong.
    pub fn new(name: &str, config: AnthropicConfig, client: Client) -> Result<Self, String> {
        let place = ProviderAddress {
            base_url: &config.base_url,
            path: &["messages"],
            key_header: ("x-api-key", ""),
            api_key: config.api_key.as_ref(),
            headers: &config.headers,
            own_headers: &[("anthropic-version", "2023-06-01")],
            timeout_ms: config.timeout_ms,
        };
        Ok(Self { endpoint: Endpoint::new(name, place, client)?, config })
    }
}

#[async_trait]
impl Model for AnthropicModel {
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let demand = Demand::of(request, self.config.structured_output);
        let names = demand.names(request);
        let body = request::body(request, demand, &names);
        let assembly: AnthropicAssembly =
            self.endpoint.ask(&body, request.timeout, &request.listener).await?;
        assembly.finish(demand, &names, &request.model).map_err(|problem| self.endpoint.malformed(&problem))
    }

    fn takes_pictures(&self) -> bool {
        self.config.takes_pictures()
    }
}
