//! A provider's address with its key: sends one request and reads one answer, both bounded.

use super::failure;
use super::stream::{self, Assembly};
use crate::model::ModelError;
use crate::model::said::Listener;
use crate::oci::OciSigner;
use crate::tool::header::{HeaderText, check_headers, resolve_headers};
use crate::tool::{address_guard, outbound};
use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use turnstone_specs::agent_spec::model::RetryPolicy;
use turnstone_telemetry::{Secret, SecretRef};
use url::Url;

/// A provider's address and headers, from its section of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct ProviderAddress<'a> {
    /// The address up to and including the version.
    pub base_url: &'a str,
    /// The path of a call below `base_url`.
    pub path: &'static [&'static str],
    /// The header that carries the key, and the prefix of its value.
    pub key_header: (&'static str, &'static str),
    /// The key.
    pub api_key: Option<&'a SecretRef>,
    /// Headers of every call.
    pub headers: &'a BTreeMap<String, HeaderText>,
    /// Headers of every call that the configuration may override.
    pub own_headers: &'static [(&'static str, &'static str)],
    /// The longest one call may take, in milliseconds.
    pub timeout_ms: Option<u64>,
}

/// A validated address with its pool of connections.
#[derive(Debug)]
pub struct Endpoint {
    name: String,
    url: Url,
    key_header: (&'static str, &'static str),
    api_key: Option<SecretRef>,
    /// A key that came by its value.
    given_key: Option<Secret>,
    headers: BTreeMap<String, HeaderText>,
    own_headers: &'static [(&'static str, &'static str)],
    timeout: Option<Duration>,
    /// The statuses that a document allows to be tried again.
    retries: Option<RetryPolicy>,
    /// Signs requests to Oracle's cloud.
    signer: Option<Arc<OciSigner>>,
    client: Client,
}

impl Endpoint {
    /// Returns the address of the provider `name`. Credentials are fetched once now, so that a missing one is
    /// describe_problem at start-up. They are fetched again for every call, so that they can be rotated.
    ///
    /// # Errors
    /// A sentence that names the key of the configuration that is wrong.
    pub fn new(name: &str, place: ProviderAddress<'_>, client: Client) -> Result<Self, String> {
        let mut url = Url::parse(place.base_url).map_err(|error| format!("base_url: not a URL: {error}"))?;
        address_guard::check_form(&url).map_err(|problem| format!("base_url: {problem}"))?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(place.path);
        }
        check_headers(place.headers)?;
        if place.timeout_ms == Some(0) {
            return Err(
                "timeout_ms: 0 would let no call come to an end; leave it out, or give at least 1".to_owned()
            );
        }
        let endpoint = Self {
            name: name.to_owned(),
            url,
            key_header: place.key_header,
            api_key: place.api_key.cloned(),
            given_key: None,
            headers: place.headers.clone(),
            own_headers: place.own_headers,
            timeout: place.timeout_ms.map(Duration::from_millis),
            retries: None,
            signer: None,
            client,
        };
        endpoint.headers()?;
        Ok(endpoint)
    }

    /// The same with a key that came by its value.
    pub fn with_key(self, given_key: Option<Secret>) -> Self {
        Self { given_key, ..self }
    }

    /// The same with the retries of a document.
    pub fn with_retries(self, retries: Option<RetryPolicy>) -> Self {
        Self { retries, ..self }
    }

    /// The same with signed requests.
    pub fn signed_by(self, signer: Arc<OciSigner>) -> Self {
        Self { signer: Some(signer), ..self }
    }

    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.own_headers {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.extend(resolve_headers(&self.headers)?);
        let secret = match &self.api_key {
            Some(key) => Some(key.resolve().map_err(|problem| format!("api_key: {problem}"))?),
            None => self.given_key.clone(),
        };
        if let Some(secret) = secret {
            let (header, prefix) = self.key_header;
            let mut value = HeaderValue::try_from(format!("{prefix}{}", secret.expose()))
                .map_err(|_| "api_key: the secret cannot be sent in a header".to_owned())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(header), value);
        }
        Ok(headers)
    }

    /// Sends one request and reads its answer, within the smaller of `timeout` and the provider's own.
    ///
    /// # Errors
    /// [`ModelError`], by the one mapping of [`failure`].
    pub async fn ask<A: Assembly>(
        &self,
        body: &Value,
        timeout: Duration,
        listener: &Listener,
    ) -> Result<A, ModelError> {
        let timeout = self.timeout.map_or(timeout, |own| own.min(timeout));
        tokio::time::timeout(timeout, self.exchange(body, listener)).await.unwrap_or_else(|_| {
            let model = body["model"].as_str().unwrap_or("the model");
            Err(ModelError::Timeout(
                self.sentence(&format!("{model} did not answer within {} ms", timeout.as_millis())),
            ))
        })
    }

    async fn exchange<A: Assembly>(&self, body: &Value, listener: &Listener) -> Result<A, ModelError> {
        let headers = self.headers().map_err(|problem| ModelError::Refused(self.sentence(&problem)))?;
        let request = self.client.post(self.url.clone()).headers(outbound::trace_headers()).headers(headers);
        let request = match &self.signer {
            None => request.json(body),
            Some(signer) => {
                let bytes = body.to_string().into_bytes();
                let refused = |problem: String| ModelError::Refused(self.sentence(&problem));
                let headers = signer.headers(&self.url, &bytes).map_err(refused)?;
                request.headers(headers).body(bytes)
            }
        };
        let sent = request.send().await;
        let response =
            sent.map_err(|error| ModelError::Unavailable(self.sentence(&outbound::describe(&error))))?;
        let describe_problem = |problem: &str| self.sentence(problem);
        if !response.status().is_success() {
            return Err(failure::of_response(response, self.retries.as_ref(), &describe_problem).await);
        }
        if outbound::media_type(&response) == "text/event-stream" {
            return stream::read(response, listener, &describe_problem).await;
        }
        stream::read_whole(response, &describe_problem).await
    }

    /// Returns a sentence about this provider.
    pub fn sentence(&self, problem: &str) -> String {
        format!("provider {}: {problem}", self.name)
    }

    /// Returns the error for an answer that cannot be parsed.
    pub fn malformed(&self, problem: &str) -> ModelError {
        ModelError::Malformed(self.sentence(problem))
    }
}
