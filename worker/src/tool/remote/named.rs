//! An agent of `[remote.agents.<name>]`: a tool that is asked over a protocol of agents.

use super::a2a::A2a;
use super::agent::{input_schema, text_of};
use super::agent_protocol::AgentProtocol;
use super::config::{NamedConfig, Protocol, RemoteConfig};
use super::wire::{self, Wire, short};
use crate::tool::header::check_headers;
use crate::tool::identity::Errand;
use crate::tool::{Invocation, Tool, ToolError, Transport};
use async_trait::async_trait;
use reqwest::Client;
use serde_json::{Map, Value, json};
use std::time::Duration;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::question::Question;

/// The longest description that an agent may give of itself, in characters.
const DESCRIPTION: usize = 2_000;
/// The longest meaning of a key that an agent asks for, in characters.
const MEANING: usize = 2_000;

/// A question for keys and what each means, as an agent elsewhere wrote them down.
///
/// # Errors
/// A sentence that says why it cannot be asked.
pub(super) fn question(keys: Option<&Map<String, Value>>) -> Result<Question, String> {
    let meaning = |text: &Value| text.as_str().unwrap_or_default().chars().take(MEANING).collect::<String>();
    let keys = keys.into_iter().flatten().map(|(key, text)| (key.clone(), meaning(text).into()));
    Question::read(&json!({"request_keys": keys.collect::<Map<String, Value>>()}))
        .map_err(|why| format!("it asks what cannot be asked: {why}"))
}

/// What an agent is asked, and as what.
pub(super) struct Asked<'a> {
    /// The name of the call, here and there.
    pub call: &'a str,
    /// What it is to do.
    pub text: String,
    /// What a Turnstone server that knows us is told beside it.
    pub errand: Option<&'a Errand>,
}

/// What came of asking.
pub(super) enum Begun {
    /// It works, under this handle.
    Under(Value),
    /// It answered at once.
    Done(Value),
}

/// The protocol that an agent speaks.
#[derive(Debug)]
enum Speech {
    AgentProtocol(AgentProtocol),
    A2a(A2a),
}

/// An agent elsewhere, as a tool of this worker.
#[derive(Debug)]
pub struct NamedAgent {
    spec: ToolSpec,
    speech: Speech,
    peer: bool,
    timeout: Duration,
    max_tokens: i64,
}

impl NamedAgent {
    /// Checks what the configuration says of one.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub(super) fn check(config: &NamedConfig, remote: &RemoteConfig) -> Result<(), String> {
        wire::address(&config.url, remote.allow_private)?;
        check_headers(&config.headers)?;
        if config.timeout_ms == Some(0) || config.max_tokens == Some(0) {
            return Err("timeout_ms and max_tokens must be above 0".to_owned());
        }
        Ok(())
    }

    /// What is known of one before it was asked.
    pub(super) fn expected(name: &str, config: &NamedConfig) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: config.description.clone().unwrap_or_else(|| format!("The agent {name}.")),
            input_schema: input_schema(),
            // A request of the Agent Protocol has the name that we give it, and Turnstone knows a message again. Other servers of
            // A2A may begin another task for the same message.
            idempotent: config.peer || config.protocol == Protocol::AgentProtocol,
        }
    }

    /// Asks one what it is.
    ///
    /// # Errors
    /// A sentence that says why it cannot be used.
    pub(super) async fn read(
        name: &str,
        config: &NamedConfig,
        remote: &RemoteConfig,
        client: Client,
    ) -> Result<Self, String> {
        let url = wire::address(&config.url, remote.allow_private)?;
        let wire = Wire::new(url, config.headers.clone(), client);
        let (speech, said) = match config.protocol {
            Protocol::AgentProtocol => {
                let (speech, said) = AgentProtocol::read(wire).await.map_err(|error| error.to_string())?;
                (Speech::AgentProtocol(speech), said)
            }
            Protocol::A2a => {
                let (speech, said) = A2a::read(wire).await.map_err(|error| error.to_string())?;
                (Speech::A2a(speech), said)
            }
        };
        let mut spec = Self::expected(name, config);
        if config.description.is_none() && !said.trim().is_empty() {
            spec.description = said.chars().take(DESCRIPTION).collect();
        }
        Ok(Self {
            spec,
            speech,
            peer: config.peer,
            timeout: Duration::from_millis(config.timeout_ms.unwrap_or(remote.timeout_ms).max(1)),
            max_tokens: i64::from(config.max_tokens.unwrap_or(remote.max_tokens)),
        })
    }

    async fn ask(&self, invocation: &Invocation<'_>, errand: &Errand) -> Result<Value, ToolError> {
        let asked = Asked {
            call: invocation.call_id.as_str(),
            text: text_of(invocation.input),
            errand: Some(errand).filter(|_| self.peer),
        };
        if let Some(handle) = &errand.handle {
            return match &self.speech {
                Speech::AgentProtocol(speech) => speech.follow(handle, errand).await,
                Speech::A2a(speech) => speech.follow(handle, &asked, errand).await,
            };
        }
        let begun = match &self.speech {
            Speech::AgentProtocol(speech) => speech.begin(&asked).await?,
            Speech::A2a(speech) => speech.begin(&asked).await?,
        };
        match begun {
            Begun::Done(output) => Ok(output),
            Begun::Under(handle) => Err(ToolError::Begun(Box::new(handle))),
        }
    }
}

#[async_trait]
impl Tool for NamedAgent {
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
            let text = format!("agent {}: it is asked for an engagement only", self.spec.name);
            return Err(ToolError::Refused(text));
        };
        let asked = self.ask(&invocation, &errand);
        tokio::time::timeout(invocation.timeout, asked).await.unwrap_or_else(|_| {
            let ms = invocation.timeout.as_millis();
            let text = format!("agent {}: it has not ended within {ms} ms", self.spec.name);
            Err(ToolError::Timeout(text))
        })
    }

    async fn call_off(&self, handle: &Value) {
        let called_off = match &self.speech {
            Speech::AgentProtocol(speech) => speech.cancel(handle).await,
            Speech::A2a(speech) => speech.cancel(handle).await,
        };
        if let Err(error) = called_off {
            let (agent, error) = (&self.spec.name, short(&error.to_string()));
            tracing::info!(
                agent,
                error,
                "an agent elsewhere could not be told that nobody waits for it any more"
            );
        }
    }
}
