//! The agents of `[remote.agents.<name>]`: the checks of their configuration, and their descriptions.

use super::a2a::A2a;
use super::agent::{RemoteAgent, Speech, input_schema};
use super::agent_protocol::AgentProtocol;
use super::config::{NamedConfig, Protocol, RemoteConfig};
use super::wire::{self, Wire};
use crate::tool::header::check_headers;
use reqwest::Client;
use std::time::Duration;
use turnstone_domain::agent::ToolSpec;

/// The longest description that an agent may give of itself, in characters.
const DESCRIPTION: usize = 2_000;

/// Checks the configuration of one agent.
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

/// Returns the tool of an agent before its description was read.
pub(super) fn expected(name: &str, config: &NamedConfig) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: config.description.clone().unwrap_or_else(|| format!("The agent {name}.")),
        input_schema: input_schema(),
        // The Agent Protocol uses our id for a request, and Turnstone recognizes a repeated message. Other
        // A2A servers may begin another task for the same message.
        idempotent: config.peer || config.protocol == Protocol::AgentProtocol,
    }
}

/// Reads an agent's description.
///
/// # Errors
/// A sentence with the reason why it cannot be used.
pub(super) async fn read(
    name: &str,
    config: &NamedConfig,
    remote: &RemoteConfig,
    client: Client,
) -> Result<RemoteAgent, String> {
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
    let mut spec = expected(name, config);
    if config.description.is_none() && !said.trim().is_empty() {
        spec.description = said.chars().take(DESCRIPTION).collect();
    }
    Ok(RemoteAgent {
        place: name.to_owned(),
        spec,
        speech,
        peer: config.peer,
        timeout: Duration::from_millis(config.timeout_ms.unwrap_or(remote.timeout_ms).max(1)),
        max_tokens: i64::from(config.max_tokens.unwrap_or(remote.max_tokens)),
    })
}
