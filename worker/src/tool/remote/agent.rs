//! One agent on another server, called as a tool.

use super::config::RemoteConfig;
use super::wire::{REQUEST, Wire, short};
use crate::tool::header::{HeaderText, SecretHeader};
use crate::tool::identity::Errand;
use crate::tool::outbound;
use crate::tool::{Invocation, Tool, ToolError, Transport};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use reqwest::Client;
use reqwest::header::LOCATION;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::ToolSpec;
use turnstone_telemetry::SecretRef;
use url::Url;

/// Questions after an engagement that may go unanswered in a row.
pub(super) const MOST_LOST: u32 = 20;
/// The longest between two questions.
const SLOWEST: Duration = Duration::from_secs(3);

/// An agent on another server.
#[derive(Debug)]
pub struct RemoteAgent {
    spec: ToolSpec,
    wire: Wire,
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
            input_schema: input_schema(),
            idempotent: true,
        };
        let timeout = Duration::from_millis(config.timeout_ms.max(1));
        let key = SecretHeader { secret: key, prefix: "Bearer ".to_owned() };
        let headers = BTreeMap::from([("authorization".to_owned(), HeaderText::Secret(key))]);
        let wire = Wire::new(url, headers, client);
        Self { spec, wire, timeout, max_tokens: i64::from(config.max_tokens) }
    }

    /// Where it is.
    #[must_use]
    pub fn url(&self) -> &Url {
        self.wire.url()
    }

    /// Begins the engagement, or finds the one that this call began before; returns where its state is.
    async fn begin(&self, invocation: &Invocation<'_>, errand: &Errand) -> Result<Url, ToolError> {
        let request = self
            .wire
            .post(self.url().clone())?
            .timeout(REQUEST)
            .header("idempotency-key", invocation.call_id.as_str())
            .headers(errand.headers())
            .json(&json!({"input": text_of(invocation.input)}));
        // The key makes another try safe, whatever became of this one.
        let lost = |error: reqwest::Error| ToolError::Failed(self.wire.says(&outbound::describe(&error)));
        let response = request.send().await.map_err(lost)?;
        if response.status().as_u16() != 303 {
            return Err(self.wire.refusal(response).await);
        }
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let state = location.and_then(|location| self.url().join(location).ok());
        let state = state.filter(|state| state.origin() == self.url().origin());
        state.ok_or_else(|| self.wire.unusable("it answered 303 without an address on its own host"))
    }

    /// Asks after the engagement until it has ended.
    async fn follow(&self, state: Url, errand: &Errand) -> Result<Value, ToolError> {
        let mut pauses = pauses();
        let mut lost = 0;
        loop {
            let answer = self.wire.get(state.clone())?.timeout(REQUEST).send().await;
            let told = match answer {
                Ok(response) if response.status().is_success() => Ok(self.wire.json(response).await?),
                Ok(response) if response.status().is_server_error() => Err(self.wire.refusal(response).await),
                Ok(response) => return Err(self.wire.refusal(response).await),
                Err(error) => Err(ToolError::Failed(self.wire.says(&outbound::describe(&error)))),
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
            tokio::time::sleep(pauses.next().unwrap_or(SLOWEST)).await;
        }
    }

    /// What became of an engagement that has ended.
    fn end(&self, mut told: Value) -> Option<Result<Value, ToolError>> {
        let status = told["status"].as_str().unwrap_or_default().to_owned();
        match status.as_str() {
            "completed" => Some(Ok(told["results"].take())),
            "failed" | "cancelled" => {
                let why = short(told["error"]["message"].as_str().unwrap_or("nobody said why"));
                Some(Err(self.wire.unusable(&format!("it ended {status}: {why}"))))
            }
            _ => None,
        }
    }
}

/// The one argument of an agent that is called as a tool.
pub(super) fn input_schema() -> Value {
    json!({"type": "object", "required": ["input"], "additionalProperties": false,
           "properties": {"input": {"type": "string", "description": "What this agent is to do, in full sentences."}}})
}

/// What an agent is asked.
pub(super) fn text_of(arguments: &Value) -> String {
    match arguments.get("input") {
        Some(Value::String(text)) => text.clone(),
        _ => arguments.to_string(),
    }
}

/// Between two questions after the same.
pub(super) fn pauses() -> impl Iterator<Item = Duration> + Send {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(SLOWEST)
        .with_factor(1.5)
        .without_max_times()
        .build()
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
            return Err(ToolError::Refused(self.wire.says("it is asked for an engagement only")));
        };
        let asked = async {
            let state = self.begin(&invocation, &errand).await?;
            self.follow(state, &errand).await
        };
        tokio::time::timeout(invocation.timeout, asked).await.unwrap_or_else(|_| {
            let ms = invocation.timeout.as_millis();
            Err(ToolError::Timeout(self.wire.says(&format!("it has not ended within {ms} ms"))))
        })
    }
}
