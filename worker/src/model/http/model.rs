//! A model behind an API over HTTP: sends one request and reads one answer, both bounded.

use super::config::{HttpProviderConfig, StructuredOutput};
use super::{Api, History, PartialAnswer, WireNames, failure, stream};
use crate::model::{FinishReason, Listener, Model, ModelAnswer, ModelError, ModelRequest};
use crate::oci::OciSigner;
use crate::tool::header::{check_headers, resolve_headers};
use crate::tool::{address_guard, outbound};
use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use turnstone_domain::agent::OutputContract;
use turnstone_domain::error::Unreached;
use turnstone_domain::message::{Message, Role};
use turnstone_specs::agent_spec::model::RetryPolicy;
use turnstone_telemetry::{Secret, SeldomEach};
use url::Url;

/// The time between two looks at an answer that is still being written.
const POLL: Duration = Duration::from_millis(500);

/// The most refusals of a model that its next calls heed.
const MOST_REFUSALS: usize = 4;
/// The most pauses of one answer.
const MOST_PAUSES: usize = 16;

/// The models of a provider over HTTP, with a pool of connections.
#[derive(Debug)]
pub struct HttpModel {
    name: String,
    url: Url,
    api: Box<dyn Api>,
    config: HttpProviderConfig,
    /// A key that came by its value.
    given_key: Option<Secret>,
    /// Parameters that are sent with every call beside those of the request.
    more: Map<String, Value>,
    /// The statuses that a document allows to be tried again.
    retries: Option<RetryPolicy>,
    /// Signs requests to Oracle's cloud.
    signer: Option<Arc<OciSigner>>,
    /// Refusals of members that a model does not know, by the model: its next calls come without them.
    refusals: Mutex<HashMap<String, Vec<String>>>,
    client: Client,
}

impl HttpModel {
    /// Returns a provider called `name`. Credentials are fetched once now, so that a missing one is reported
    /// at start-up. They are fetched again for every call, so that they can be rotated.
    ///
    /// # Errors
    /// A sentence that names the key of the configuration that is wrong.
    pub fn new(
        name: &str,
        api: Box<dyn Api>,
        config: HttpProviderConfig,
        client: Client,
    ) -> Result<Self, String> {
        let base_url = config.base_url.as_deref().unwrap_or(api.base_url());
        let mut url = Url::parse(base_url).map_err(|error| format!("base_url: not a URL: {error}"))?;
        address_guard::check_form(&url).map_err(|problem| format!("base_url: {problem}"))?;
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(api.path());
        }
        check_headers(&config.headers)?;
        if config.timeout_ms == Some(0) {
            return Err(
                "timeout_ms: 0 would let no call come to an end; leave it out, or give at least 1".to_owned()
            );
        }
        let name = name.to_owned();
        let (given_key, retries, signer) = (None, None, None);
        let (more, refusals) = (Map::new(), Mutex::default());
        let model = Self { name, url, api, config, given_key, more, retries, signer, refusals, client };
        model.headers()?;
        Ok(model)
    }

    /// The same with a key that came by its value, and with these parameters in every call.
    #[must_use]
    pub fn with(self, given_key: Option<Secret>, more: Map<String, Value>) -> Self {
        Self { given_key, more, ..self }
    }

    /// The same with the retries of a document.
    #[must_use]
    pub fn with_retries(self, retries: Option<RetryPolicy>) -> Self {
        Self { retries, ..self }
    }

    /// The same with signed requests.
    #[must_use]
    pub fn signed_by(self, signer: Arc<OciSigner>) -> Self {
        Self { signer: Some(signer), ..self }
    }

    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (name, value) in self.api.own_headers() {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        headers.extend(resolve_headers(&self.config.headers)?);
        let secret = match &self.config.api_key {
            Some(key) => Some(key.resolve().map_err(|problem| format!("api_key: {problem}"))?),
            None => self.given_key.clone(),
        };
        if let Some(secret) = secret {
            let (header, prefix) = self.api.key_header();
            let mut value = HeaderValue::try_from(format!("{prefix}{}", secret.expose()))
                .map_err(|_| "api_key: the secret cannot be sent in a header".to_owned())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(header), value);
        }
        Ok(headers)
    }

    /// Asks until the model has ended its answer: one that pauses continues when it gets back what it said.
    async fn ask_until_ended(
        &self,
        request: &ModelRequest,
        names: &WireNames,
    ) -> Result<ModelAnswer, ModelError> {
        let mut request = Cow::Borrowed(request);
        let (messages, max_tokens) = (request.messages.len(), request.max_tokens);
        let mut said: Option<ModelAnswer> = None;
        for _ in 0..=MOST_PAUSES {
            let partial = self.exchange_without_refused(&request, names).await;
            // The parts before a pause are paid for, so the failure of a later part is no outage.
            let partial = partial.map_err(|error| match said {
                Some(_) if error.is_unpaid() => ModelError::Cut(error.to_string()),
                _ => error,
            })?;
            let is_paused = partial.is_paused;
            let answer = self.api.finish(partial, names, &self.name, &request);
            let answer = answer.map_err(|problem| ModelError::Malformed(self.sentence(&problem)))?;
            let answer = match said.take() {
                Some(said) => said.continued_by(answer),
                None => answer,
            };
            if !is_paused {
                return Ok(answer);
            }
            let used = answer.usage.map_or(0, |usage| usage.output);
            if used >= max_tokens {
                return Ok(ModelAnswer { finish_reason: FinishReason::Length, ..answer });
            }
            let next = request.to_mut();
            next.messages.truncate(messages);
            next.messages.push(Arc::new(Message {
                attached: answer.attached.clone(),
                ..Message::text(Role::Assistant, answer.content.clone().unwrap_or_default())
            }));
            next.max_tokens = max_tokens - used;
            said = Some(answer);
        }
        Err(ModelError::Malformed(self.sentence(&format!("the answer paused more than {MOST_PAUSES} times"))))
    }

    /// Asks once. A member that the model turns out not to know is left out, and is left out of its next calls.
    async fn exchange_without_refused(
        &self,
        request: &ModelRequest,
        names: &WireNames,
    ) -> Result<PartialAnswer, ModelError> {
        let mut body = self.api.body(request, names, &History::of(request, &self.name), &self.more);
        if self.config.store {
            // The provider finishes the answer even when the connection is lost.
            (body["store"], body["background"]) = (true.into(), true.into());
        }
        let mut known = self.refusals().get(&request.model).cloned().unwrap_or_default();
        for refusal in &known {
            self.api.remove_refused(&mut body, refusal);
        }
        let before = known.len();
        loop {
            match self.exchange(&body, &request.listener).await {
                Err(ModelError::Refused(refusal))
                    if known.len() < MOST_REFUSALS && self.api.remove_refused(&mut body, &refusal) =>
                {
                    known.push(refusal);
                }
                answered => {
                    if answered.is_ok() && known.len() > before {
                        self.refusals().insert(request.model.clone(), known);
                    }
                    return answered;
                }
            }
        }
    }

    fn refusals(&self) -> MutexGuard<'_, HashMap<String, Vec<String>>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn exchange(&self, body: &Value, listener: &Listener) -> Result<PartialAnswer, ModelError> {
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
        let response = sent.map_err(|error| self.not_sent(&error))?;
        let describe_problem = |problem: &str| self.sentence(problem);
        if !response.status().is_success() {
            return Err(failure::of_response(response, self.retries.as_ref(), &describe_problem).await);
        }
        if outbound::media_type(&response) == "text/event-stream" {
            return stream::read(response, &*self.api, listener, &describe_problem).await;
        }
        stream::read_whole(response, &*self.api, &describe_problem).await
    }

    /// Runs a part of a call within the smaller of the request's time and the provider's own.
    async fn in_time<T>(
        &self,
        request: &ModelRequest,
        part: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, ModelError> {
        let own = self.config.timeout_ms.map(Duration::from_millis);
        let timeout = own.map_or(request.timeout, |own| own.min(request.timeout));
        tokio::time::timeout(timeout, part).await.unwrap_or_else(|_| {
            let problem = format!("{} did not answer within {} ms", request.model, timeout.as_millis());
            Err(ModelError::Timeout(self.sentence(&problem)))
        })
    }

    /// Returns the document that the provider keeps under an id, once it is no longer being written; `None` when there is
    /// none.
    async fn fetch(&self, id: &str) -> Result<Option<Value>, ModelError> {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.push(id);
        }
        let describe_problem = |problem: &str| self.sentence(problem);
        loop {
            let headers = self.headers().map_err(|problem| ModelError::Refused(self.sentence(&problem)))?;
            let request = self.client.get(url.clone()).headers(outbound::trace_headers()).headers(headers);
            let sent = request.send().await;
            let response = sent.map_err(|error| self.not_sent(&error))?;
            let is_busy = matches!(
                response.status(),
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
            );
            // The provider has no such answer, or does not give it to this key.
            if response.status().is_client_error() && !is_busy {
                return Ok(None);
            }
            if !response.status().is_success() {
                return Err(failure::of_response(response, self.retries.as_ref(), &describe_problem).await);
            }
            let document = stream::document(response, &describe_problem).await?;
            if !self.api.is_in_progress(&document) {
                return Ok(Some(document));
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Returns the error of a request without an answer. A provider to which no connection is made is logged once a minute.
    fn not_sent(&self, error: &reqwest::Error) -> ModelError {
        static FACTS: SeldomEach = SeldomEach::new();
        let Some(problem) = outbound::connect_problem(error) else {
            return ModelError::Unavailable(self.sentence(&outbound::describe(error)));
        };
        let (provider, address) = (self.name.clone(), self.url.origin().ascii_serialization());
        let due = FACTS.due(&format!("{provider} {address}"));
        let unreached = Unreached { provider, problem, address };
        if let Some(left_out) = due {
            tracing::warn!(left_out, "{unreached}");
        }
        ModelError::Unreached(Box::new(unreached))
    }

    /// Returns a sentence about this provider.
    fn sentence(&self, problem: &str) -> String {
        format!("provider {}: {problem}", self.name)
    }
}

#[async_trait]
impl Model for HttpModel {
    /// Waits at most for the smaller of the request's time and the provider's own.
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let request = match self.config.structured_output {
            StructuredOutput::Native => Cow::Borrowed(request),
            StructuredOutput::Prompt => {
                Cow::Owned(ModelRequest { output: OutputContract::default(), ..request.clone() })
            }
        };
        let names = self.api.names(&request);
        self.in_time(&request, self.ask_until_ended(&request, &names)).await
    }

    fn keeps_answers(&self) -> bool {
        self.config.store
    }

    async fn kept_answer(&self, id: &str, request: &ModelRequest) -> Result<Option<ModelAnswer>, ModelError> {
        let Some(kept) = self.in_time(request, self.fetch(id)).await? else { return Ok(None) };
        let mut answer = PartialAnswer::default();
        let names = self.api.names(request);
        // One that failed, or that was cancelled, is no answer.
        let is_answer =
            self.api.failure(&kept).is_none() && self.api.absorb_whole(&mut answer, &kept).is_ok();
        Ok(is_answer.then(|| self.api.finish(answer, &names, &self.name, request).ok()).flatten())
    }

    fn takes_pictures(&self) -> bool {
        let own = self.api.base_url();
        self.config.pictures.unwrap_or_else(|| self.config.base_url.as_deref().unwrap_or(own) == own)
    }
}
