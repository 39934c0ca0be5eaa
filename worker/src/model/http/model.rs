//! A model behind an API over HTTP.

use super::{Assembly, Endpoint, ProviderAddress, WireNames};
use crate::model::{Model, ModelAnswer, ModelError, ModelRequest};
use crate::oci::OciSigner;
use async_trait::async_trait;
use reqwest::Client;
use serde_json::{Map, Value};
use std::fmt::Debug;
use std::sync::Arc;
use turnstone_specs::agent_spec::model::RetryPolicy;
use turnstone_telemetry::Secret;

/// An API of models, with its settings.
pub trait Api: Debug + Send + Sync + 'static {
    /// The part of an answer that has arrived.
    type Assembly: Assembly;

    /// Returns the address and the headers of calls.
    fn address(&self) -> ProviderAddress<'_>;

    /// Returns the names of the tools on offer.
    fn names(&self, request: &ModelRequest) -> WireNames {
        WireNames::of(request.tools.iter().map(|tool| tool.name.as_str()))
    }

    /// Returns the body of a call. `more` has parameters that the request has no place for.
    fn body(&self, request: &ModelRequest, names: &WireNames, more: &Map<String, Value>) -> Value;

    /// Returns the answer.
    ///
    /// # Errors
    /// A sentence that says why it is none.
    fn finish(
        &self,
        assembly: Self::Assembly,
        request: &ModelRequest,
        names: &WireNames,
    ) -> Result<ModelAnswer, String>;

    /// Returns true if the models take the pictures of tools.
    fn takes_pictures(&self) -> bool;
}

/// A model behind an API.
#[derive(Debug)]
pub struct HttpModel<A> {
    endpoint: Endpoint,
    api: A,
    /// Parameters that are sent with every call beside those of the request.
    more: Map<String, Value>,
}

impl<A: Api> HttpModel<A> {
    /// Returns a provider called `name`. Credentials are fetched once now, so that a missing one is reported
    /// at start-up. They are fetched again for every call, so that they can be rotated.
    ///
    /// # Errors
    /// A sentence that names the key of the configuration that is wrong.
    pub fn new(name: &str, api: A, client: Client) -> Result<Self, String> {
        Ok(Self { endpoint: Endpoint::new(name, api.address(), client)?, api, more: Map::new() })
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
impl<A: Api> Model for HttpModel<A> {
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let names = self.api.names(request);
        let body = self.api.body(request, &names, &self.more);
        let assembly = self.endpoint.ask(&body, request.timeout, &request.listener).await?;
        let answer = self.api.finish(assembly, request, &names);
        answer.map_err(|problem| self.endpoint.malformed(&problem))
    }

    fn takes_pictures(&self) -> bool {
        self.api.takes_pictures()
    }
}
