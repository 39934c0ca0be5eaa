//! Requests to one remote agent: their headers, the bounds of their answers, and the meaning of failures.

use super::agent::RemoteCancellation;
use crate::model::{each_text, without_nul};
use crate::tool::header::{HeaderText, resolve_headers};
use crate::tool::outbound::{self, BodyError, excerpt};
use crate::tool::{ToolError, address_guard};
use reqwest::header::{ACCEPT, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use turnstone_domain::flaw::without_half_pairs;
use turnstone_domain::schema::{MAX_VALUE_DEPTH, deeper_than};
use url::Url;

/// The longest that one request may take.
pub(super) const REQUEST: Duration = Duration::from_secs(30);
/// The largest answer, in bytes.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// The most characters of a refusal in an error.
const EXCERPT: usize = 300;

/// The connection to one agent.
#[derive(Debug)]
pub(super) struct Wire {
    url: Url,
    headers: BTreeMap<String, HeaderText>,
    client: Client,
}

impl Wire {
    pub(super) fn new(url: Url, headers: BTreeMap<String, HeaderText>, client: Client) -> Self {
        Self { url, headers, client }
    }

    /// Returns the agent's address.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// Returns an address below the agent's.
    pub(super) fn below(&self, segments: &[&str]) -> Url {
        let mut url = self.url.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    pub(super) fn get(&self, url: Url) -> Result<RequestBuilder, ToolError> {
        self.signed(self.client.get(url))
    }

    pub(super) fn post(&self, url: Url) -> Result<RequestBuilder, ToolError> {
        self.signed(self.client.post(url))
    }

    /// Posts a document of the Agent Protocol.
    pub(super) fn process(&self, body: &Value) -> Result<RequestBuilder, ToolError> {
        Ok(self.post(self.below(&["process"]))?.timeout(REQUEST).json(body))
    }

    /// Sends our user's answer to work that waits for it.
    pub(super) async fn resume(&self, body: &Value) -> Result<(), ToolError> {
        let lost = |error: reqwest::Error| ToolError::Failed(self.says(&outbound::describe(&error)));
        let response = self.process(body)?.send().await.map_err(lost)?;
        // The work no longer waits: it has the answer, or received another one there.
        if response.status().is_success() || response.status().as_u16() == 409 {
            return Ok(());
        }
        Err(self.refusal(response).await)
    }

    fn signed(&self, request: RequestBuilder) -> Result<RequestBuilder, ToolError> {
        let headers = resolve_headers(&self.headers).map_err(|why| ToolError::Refused(self.says(&why)))?;
        let request = request.headers(outbound::trace_headers()).headers(headers);
        Ok(request.header(ACCEPT, "application/json"))
    }

    pub(super) fn says(&self, what: &str) -> String {
        format!("agent {}: {what}", self.url)
    }

    /// Sends a request that may be sent again, and returns a successful answer.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, ToolError> {
        let lost = |error: reqwest::Error| ToolError::Failed(self.says(&outbound::describe(&error)));
        let response = request.send().await.map_err(lost)?;
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    /// Sends a request that may have had its effect although no answer came. Then it is lost, unless it
    /// certainly never arrived. `yes` accepts the statuses of success.
    pub(super) async fn send_once(
        &self,
        request: RequestBuilder,
        yes: fn(u16) -> bool,
    ) -> Result<Response, ToolError> {
        let response = request.send().await.map_err(|error| {
            let text = self.says(&outbound::describe(&error));
            if error.is_connect() || error.is_builder() {
                ToolError::Unreached(text)
            } else {
                ToolError::Lost(text)
            }
        })?;
        match response.status().as_u16() {
            status if yes(status) => Ok(response),
            // A gateway does not know the outcome of the request behind it.
            408 | 500 | 502 | 504 | 520..=524 => match self.refusal(response).await {
                ToolError::Failed(text) => Err(ToolError::Lost(text)),
                other => Err(other),
            },
            _ => Err(self.refusal(response).await),
        }
    }

    /// Sends a request that cancels work.
    pub(super) async fn end(&self, request: RequestBuilder) -> Result<RemoteCancellation, ToolError> {
        let lost = |error: reqwest::Error| ToolError::Failed(self.says(&outbound::describe(&error)));
        self.standing(request.send().await.map_err(lost)?.status().as_u16())
    }

    /// Returns the state of work after its cancellation, by the status of the answer.
    pub(super) fn standing(&self, status: u16) -> Result<RemoteCancellation, ToolError> {
        match status {
            200..=299 => Ok(RemoteCancellation::Ends),
            404 | 410 => Ok(RemoteCancellation::Unknown),
            // The rest of the answer may not be shown: the calling agent may be one whose words are withheld.
            status => {
                let text =
                    self.says(&format!("it was asked to cancel that, and answered with status {status}"));
                Err(match status {
                    429 | 503 => ToolError::Busy(text, None),
                    300..=407 | 409..=499 => ToolError::Final(text),
                    _ => ToolError::Failed(text),
                })
            }
        }
    }

    /// Returns the body of an answer.
    pub(super) async fn json(&self, response: Response) -> Result<Value, ToolError> {
        let body = outbound::read_body(response, MOST_BYTES).await.map_err(|error| match error {
            BodyError::Lost(_) => ToolError::Failed(self.says(&error.to_string())),
            BodyError::TooLarge(_) => self.unusable(&error.to_string()),
        })?;
        self.parsed(&body)
    }

    /// Returns a text of an answer as JSON.
    pub(super) fn parsed(&self, text: &[u8]) -> Result<Value, ToolError> {
        let text = String::from_utf8_lossy(text);
        let mut answer: Value = serde_json::from_str(&without_half_pairs(&text))
            .map_err(|error| self.unusable(&format!("its answer is no JSON: {error}")))?;
        each_text(&mut answer, &mut without_nul);
        match deeper_than(&answer, MAX_VALUE_DEPTH) {
            true => Err(self.unusable(&format!("its answer nests deeper than {MAX_VALUE_DEPTH} levels"))),
            false => Ok(answer),
        }
    }

    /// Returns the error of an answer that a retry would not improve.
    pub(super) fn unusable(&self, why: &str) -> ToolError {
        ToolError::Final(self.says(why))
    }

    /// Returns the error of an answer without success.
    pub(super) async fn refusal(&self, response: Response) -> ToolError {
        let (status, defers) = (response.status(), response.headers().contains_key(RETRY_AFTER));
        let answer = match outbound::read_start(response, 4 * EXCERPT).await {
            Ok((body, _)) => short(&String::from_utf8_lossy(&body)),
            Err(error) => error.to_string(),
        };
        let hint = if status.is_redirection() { " (redirects are not followed)" } else { "" };
        let text = self.says(&format!("answered with status {}{hint}: {answer}", status.as_u16()));
        match status.as_u16() {
            429 => ToolError::Busy(text, None),
            503 if defers => ToolError::Busy(text, None),
            300..=407 | 409..=499 => ToolError::Final(text),
            _ => ToolError::Failed(text),
        }
    }
}

/// Returns the start of another server's text, for an error.
pub(super) fn short(text: &str) -> String {
    excerpt(text, EXCERPT)
}

/// Returns an address of the configuration: over TLS, unless private addresses are allowed.
pub(super) fn address(text: &str, allow_private: bool) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("url: {text} is no address: {error}"))?;
    let look = if allow_private { address_guard::check_form } else { address_guard::check_url };
    look(&url).map_err(|why| format!("url: {why}"))?;
    if url.scheme() != "https" && !allow_private {
        return Err("url: a remote agent needs https, unless `allow_private`".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("url: it ends with the agent's path, without query and fragment".to_owned());
    }
    Ok(url)
}
