//! A remote agent of an Agent Spec document: a conversation by A2A, message by message.

use super::a2a::A2a;
use super::agent::{Begun, RemoteCancellation, RemoteRequest};
use super::spec_of_document;
use super::wire::Wire;
use crate::tool::header::HeaderText;
use crate::tool::{Invocation, Tool, ToolError, Transport, within};
use async_trait::async_trait;
use reqwest::Client;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::OnceCell;
use turnstone_domain::CallId;
use turnstone_domain::agent::ToolSpec;
use turnstone_specs::agent_spec::model::A2AAgent;
use url::Url;

/// The most tokens that are reserved for one message.
const MOST_TOKENS: i64 = 100_000;

/// A remote agent. Each call sends one message and returns the answer with the place of the next message.
pub struct ConversingAgent {
    spec: ToolSpec,
    agent: A2AAgent,
    address: Url,
    client: Client,
    /// Its protocol, once its card was read.
    speech: OnceCell<A2a>,
}

impl ConversingAgent {
    /// Returns the agent at an address that was checked.
    pub(crate) fn new(agent: &A2AAgent, address: Url, client: Client) -> Self {
        let spec = spec_of_document(&agent.head);
        Self { spec, agent: agent.clone(), address, client, speech: OnceCell::new() }
    }

    async fn ask(&self, invocation: &Invocation<'_>, handle: Option<&Value>) -> Result<Value, ToolError> {
        let headers = &self.agent.connection_config.headers;
        let headers =
            headers.iter().map(|(name, value)| (name.clone(), HeaderText::of_document(name, value)));
        let wire = || Wire::new(self.address.clone(), headers.clone().collect(), self.client.clone());
        let speech = self.speech.get_or_try_init(|| A2a::of_document(wire())).await?;
        if let Some(handle) = handle {
            let pause = seconds(self.agent.poll_interval.max(0.05));
            let most_lost = u32::try_from(self.agent.max_retries).unwrap_or(u32::MAX);
            return speech.hear(handle, pause, most_lost).await;
        }
        let text = invocation.input["input"].as_str().unwrap_or_default().to_owned();
        let requested = RemoteRequest { call: invocation.call_id.as_str(), text, peer_request: None };
        let place = |name: &str| invocation.input[name].as_str();
        match speech.say(&requested, place("context"), place("task")).await? {
            Begun::Done(output) => Ok(output),
            Begun::Under(handle) => Err(ToolError::Begun(Box::new(handle))),
        }
    }
}

#[async_trait]
impl Tool for ConversingAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        seconds(self.agent.timeout.max(1.0))
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    fn tokens(&self) -> Option<i64> {
        Some(MOST_TOKENS)
    }

    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError> {
        let request = invocation.identity.peer_request.clone();
        let handle = request.as_ref().and_then(|request| request.handle.as_ref());
        let answered = self.ask(&invocation, handle);
        within(invocation.timeout, answered, || format!("agent {}: it has not answered", self.spec.name))
            .await
    }

    fn place(&self) -> Option<&str> {
        Some(&self.agent.agent_url)
    }
}

/// Cancels the task of a call at an address that was checked.
///
/// # Errors
/// The reason why the agent was not notified.
pub(crate) async fn cancel(
    address: Url,
    client: Client,
    call: &CallId,
    handle: Option<&Value>,
) -> Result<RemoteCancellation, ToolError> {
    match A2a::known(Wire::new(address, Default::default(), client), handle) {
        Ok(agent) => agent.cancel(handle).await,
        Err(_) => Err(ToolError::Final(format!(
            "it is unknown whether the call {} has begun a task",
            call.as_str()
        ))),
    }
}

fn seconds(number: f64) -> Duration {
    Duration::try_from_secs_f64(number).unwrap_or(Duration::from_secs(3_600)).min(Duration::from_secs(3_600))
}
