//! One agent on another server, called as a tool.

use super::book::bearer;
use super::config::RemoteConfig;
use crate::tool::identity::{Errand, said_of};
use crate::tool::outbound::{self, excerpt};
use crate::tool::{Invocation, Tool, ToolError, Transport};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use reqwest::header::{ACCEPT, AUTHORIZATION, LOCATION};
use reqwest::{Client, RequestBuilder, Response};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::agent::remote::{DEPTH, TOKEN_BUDGET};
use turnstone_domain::schema::{MAX_VALUE_DEPTH, deeper_than};
use turnstone_telemetry::SecretRef;
use url::Url;

/// The longest that one request may take.
const REQUEST: Duration = Duration::from_secs(30);
/// The largest state, in bytes.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// How much of a refusal is told, in characters.
const EXCERPT: usize = 300;
/// Questions after an engagement that may go unanswered in a row.
const MOST_LOST: u32 = 20;

/// An agent on another server.
#[derive(Debug)]
pub struct RemoteAgent {
    spec: ToolSpec,
    url: Url,
    key: SecretRef,
    client: Client,
    timeout: Duration,
    max_tokens: i64,
}

impl RemoteAgent {
    pub(super) fn new(
        definition: &AgentDefinition,
        url: Url,
        key: SecretRef,
        client: Client,
        config: &RemoteConfig,
    ) -> Self {
        let spec = ToolSpec {
            name: definition.name.clone(),
            description: definition.description.clone(),
            input_schema: json!({"type": "object", "required": ["input"], "additionalProperties": false,
                "properties": {"input": {"type": "string", "description": "What this agent is to do, in full sentences."}}}),
            idempotent: true,
        };
        let timeout = Duration::from_millis(config.timeout_ms.max(1));
        Self { spec, url, key, client, timeout, max_tokens: i64::from(config.max_tokens) }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    fn signed(&self, request: RequestBuilder) -> Result<RequestBuilder, ToolError> {
        let key = bearer(&self.key).map_err(|why| ToolError::Refused(self.says(&why)))?;
        Ok(request.header(AUTHORIZATION, key).header(ACCEPT, "application/json").timeout(REQUEST))
    }

    fn says(&self, what: &str) -> String {
        format!("agent {}: {what}", self.url)
    }

    /// Begins the engagement, or finds the one that this call began before; returns where its state is.
    async fn begin(&self, invocation: &Invocation<'_>, errand: &Errand) -> Result<Url, ToolError> {
        let text = match invocation.input.get("input") {
            Some(Value::String(text)) => text.clone(),
            _ => invocation.input.to_string(),
        };
        let mut request = self
            .signed(self.client.post(self.url.clone()))?
            .header("idempotency-key", invocation.call_id.as_str())
            .header(DEPTH, errand.depth)
            .header(TOKEN_BUDGET, errand.token_budget)
            .json(&json!({"input": text}));
        if let Some(user) = &errand.user {
            request = request.headers(said_of(user));
        }
        // The key makes another try safe, whatever became of this one.
        let lost = |error: reqwest::Error| ToolError::Failed(self.says(&outbound::describe(&error)));
        let response = request.send().await.map_err(lost)?;
        if response.status().as_u16() != 303 {
            return Err(self.refusal(response).await);
        }
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let state = location.and_then(|location| self.url.join(location).ok());
        let state = state.filter(|state| state.origin() == self.url.origin());
        state.ok_or_else(|| ToolError::Final(self.says("it answered 303 without an address on its own host")))
    }

    /// Asks after the engagement until it has ended.
    async fn follow(&self, state: Url, errand: &Errand) -> Result<Value, ToolError> {
        let mut pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(3))
            .with_factor(1.5)
            .without_max_times()
            .build();
        let mut lost = 0;
        loop {
            let answer = self.signed(self.client.get(state.clone()))?.send().await;
            let told = match answer {
                Ok(response) if response.status().is_success() => Ok(self.state(response).await?),
                Ok(response) if response.status().is_server_error() => Err(self.refusal(response).await),
                Ok(response) => return Err(self.refusal(response).await),
                Err(error) => Err(ToolError::Failed(self.says(&outbound::describe(&error)))),
            };
            match told {
                Ok(told) => {
                    lost = 0;
                    errand.tokens_used.store(told["tokens"]["used"].as_i64().unwrap_or(0), Ordering::Relaxed);
                    if let Some(end) = self.end(told) {
                        return end;
                    }
                }
                Err(error) => {
                    lost += 1;
                    if lost >= MOST_LOST {
                        return Err(error);
                    }
                }
            }
            tokio::time::sleep(pauses.next().unwrap_or(Duration::from_secs(3))).await;
        }
    }

    async fn state(&self, response: Response) -> Result<Value, ToolError> {
        let unreadable = |why: String| ToolError::Final(self.says(&why));
        let body = outbound::read_body(response, MOST_BYTES).await.map_err(|e| unreadable(e.to_string()))?;
        let told: Value = serde_json::from_slice(&body)
            .map_err(|error| unreadable(format!("its state is no JSON: {error}")))?;
        match deeper_than(&told, MAX_VALUE_DEPTH) {
            true => Err(unreadable(format!("its state nests deeper than {MAX_VALUE_DEPTH} levels"))),
            false => Ok(told),
        }
    }

    /// What became of an engagement that has ended.
    fn end(&self, mut told: Value) -> Option<Result<Value, ToolError>> {
        let status = told["status"].as_str().unwrap_or_default().to_owned();
        match status.as_str() {
            "completed" => Some(Ok(told["results"].take())),
            "failed" | "cancelled" => {
                let why = excerpt(told["error"]["message"].as_str().unwrap_or("nobody said why"), EXCERPT);
                Some(Err(ToolError::Final(self.says(&format!("it ended {status}: {why}")))))
            }
            _ => None,
        }
    }

    async fn refusal(&self, response: Response) -> ToolError {
        let status = response.status();
        let told = match outbound::read_start(response, 4 * EXCERPT).await {
            Ok((body, _)) => excerpt(&String::from_utf8_lossy(&body), EXCERPT),
            Err(error) => error.to_string(),
        };
        let hint = if status.is_redirection() { " (redirects are not followed)" } else { "" };
        let text = self.says(&format!("answered with status {}{hint}: {told}", status.as_u16()));
        match status.as_u16() {
            429 | 503 => ToolError::Busy(text, None),
            300..=407 | 409..=499 => ToolError::Final(text),
            _ => ToolError::Failed(text),
        }
    }
}

#[async_trait]
impl Tool for RemoteAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    fn tokens(&self) -> Option<i64> {
        Some(self.max_tokens)
    }

    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError> {
        let Some(errand) = invocation.identity.errand.clone() else {
            return Err(ToolError::Refused(self.says("it is asked for an engagement only")));
        };
        let asked = async {
            let state = self.begin(&invocation, &errand).await?;
            self.follow(state, &errand).await
        };
        tokio::time::timeout(invocation.timeout, asked).await.unwrap_or_else(|_| {
            let ms = invocation.timeout.as_millis();
            Err(ToolError::Timeout(self.says(&format!("it has not ended within {ms} ms"))))
        })
    }
}
