//! The remote agents that this worker knows.

use super::a2a::A2a;
use super::agent::{RemoteAgent, RemoteCancellation, Speech, input_schema};
use super::agent_protocol::AgentProtocol;
use super::config::{Protocol, RemoteConfig};
use super::engaging::Engaging;
use super::named;
use super::wire::{self, Wire};
use crate::tool::header::{HeaderText, SecretHeader};
use crate::tool::{ToolError, address_guard, outbound};
use reqwest::Client;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::{AgentDefinition, CallId, Clock, Timestamp};
use turnstone_telemetry::SecretRef;
use url::Url;

/// A definition is read again after this time, in milliseconds.
const FRESH_MS: i64 = 60_000;
/// The longest that reading one may take.
const READING: Duration = Duration::from_secs(10);
/// The largest document, in bytes.
const MOST_BYTES: usize = 1024 * 1024;
/// The most agents in the cache; beyond that it is emptied.
const KEPT: usize = 256;

/// Agents on other servers.
pub struct RemoteBook {
    config: RemoteConfig,
    client: Client,
    /// For agents in the operator's configuration.
    named_client: Client,
    clock: Arc<dyn Clock>,
    known: Mutex<HashMap<String, (Timestamp, Arc<RemoteAgent>)>>,
    named: Mutex<HashMap<String, (Timestamp, Arc<RemoteAgent>)>>,
    /// The permits for turns that wait for other servers without a slot.
    waiting: Arc<Semaphore>,
}

impl RemoteBook {
    /// Returns an empty book.
    ///
    /// # Errors
    /// The certificates cannot be read, or no client can be built.
    pub fn new(config: RemoteConfig, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let authorities = match &config.ca {
            None => Vec::new(),
            Some(path) => {
                let pem = std::fs::read(path)
                    .map_err(|error| format!("[remote] ca: {} cannot be read: {error}", path.display()))?;
                let certificates = reqwest::Certificate::from_pem_bundle(&pem).unwrap_or_default();
                if certificates.is_empty() {
                    return Err(format!("[remote] ca: {} holds no certificate in PEM", path.display()));
                }
                certificates
            }
        };
        for (name, agent) in &config.agents {
            named::check(agent, &config).map_err(|problem| format!("[remote.agents.{name}] {problem}"))?;
        }
        let client = outbound::trusting_client(&authorities, config.allow_private, true)?;
        // The operator's own addresses, of which private ones may be without TLS.
        let named_client =
            outbound::trusting_client(&authorities, config.allow_private, !config.allow_private)?;
        let (known, named) = (Mutex::default(), Mutex::default());
        let waiting = Arc::new(Semaphore::new(config.waiting.min(Semaphore::MAX_PERMITS)));
        Ok(Self { config, client, named_client, clock, known, named, waiting })
    }

    /// Returns the agents of `[remote.agents]`, as far as they are known before they are called.
    pub fn specs(&self) -> impl Iterator<Item = ToolSpec> {
        self.config.agents.iter().map(|(name, agent)| named::expected(name, agent))
    }

    /// Returns a permit for one more turn to wait for other servers without a slot; `None` when none is left.
    /// The permit is returned when it is dropped.
    #[must_use]
    pub fn room_outside(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.waiting).try_acquire_owned().ok()
    }

    /// Returns true if `[remote.agents]` has one of this name.
    #[must_use]
    pub fn names(&self, name: &str) -> bool {
        self.config.agents.contains_key(name)
    }

    /// Returns the agent of this name among `[remote.agents]`; its description is read unless it is recent.
    ///
    /// # Errors
    /// A sentence with the reason why there is none now.
    pub async fn named(&self, name: &str) -> Result<Arc<RemoteAgent>, String> {
        let now = self.clock.now();
        let known = self.named.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some((_, agent)) = known.filter(|(at, _)| now.since(*at) < FRESH_MS) {
            return Ok(agent);
        }
        let config = self.config.agents.get(name).ok_or_else(|| format!("add [remote.agents.{name}]"))?;
        let read = named::read(name, config, &self.config, self.named_client.clone());
        let agent = tokio::time::timeout(READING, read).await.map_err(|_| {
            format!("agent {name}: it did not say what it is within {} s", READING.as_secs())
        })??;
        let agent = Arc::new(agent);
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        named.insert(name.to_owned(), (now, Arc::clone(&agent)));
        Ok(agent)
    }

    /// Returns the agent at this address; its definition is read unless it is recent.
    ///
    /// # Errors
    /// A sentence with the reason why there is none now.
    pub async fn agent(&self, url: &str) -> Result<Arc<RemoteAgent>, String> {
        let now = self.clock.now();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned();
        if let Some((_, agent)) = known.filter(|(at, _)| now.since(*at) < FRESH_MS) {
            return Ok(agent);
        }
        let (address, key) = self.admitted(url)?;
        let definition = tokio::time::timeout(READING, self.read(&address, key))
            .await
            .map_err(|_| format!("{url} did not answer within {} s", READING.as_secs()))??;
        let agent = Arc::new(RemoteAgent {
            place: url.to_owned(),
            spec: ToolSpec {
                name: definition.name,
                description: definition.description,
                input_schema: input_schema(),
                idempotent: true,
            },
            speech: Speech::Engaging(self.engaging(address, key)),
            peer: true,
            timeout: Duration::from_millis(self.config.timeout_ms.max(1)),
            max_tokens: i64::from(self.config.max_tokens),
        });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(url.to_owned(), (now, Arc::clone(&agent)));
        Ok(agent)
    }

    /// Returns the address and the key for its host, if agents there may be called.
    fn admitted(&self, url: &str) -> Result<(Url, &SecretRef), String> {
        let address = Url::parse(url).map_err(|error| format!("{url} is no address: {error}"))?;
        let host = url.trim_start_matches("https://").split('/').next().unwrap_or_default();
        let known = self.config.hosts.get(host);
        let Some(known) = known.filter(|_| address.scheme() == "https") else {
            return Err(format!(
                "agents on {host} are not asked by this worker; add [remote.hosts.\"{host}\"]"
            ));
        };
        let look =
            if self.config.allow_private { address_guard::check_form } else { address_guard::check_url };
        look(&address)?;
        Ok((address, &known.key))
    }

    /// Cancels a remote agent's work for a call. This needs no definition, because the agent may no longer be
    /// registered there.
    ///
    /// # Errors
    /// The reason why the agent was not notified.
    pub async fn cancel(
        &self,
        place: &str,
        call: &CallId,
        handle: Option<&Value>,
    ) -> Result<RemoteCancellation, ToolError> {
        let Some(config) = self.config.agents.get(place) else {
            let (address, key) = self.admitted(place).map_err(ToolError::Refused)?;
            return self.engaging(address, key).cancel(call).await;
        };
        let url = wire::address(&config.url, self.config.allow_private).map_err(ToolError::Refused)?;
        let wire = Wire::new(url, config.headers.clone(), self.named_client.clone());
        match config.protocol {
            Protocol::AgentProtocol => AgentProtocol::known(wire).cancel(call, handle).await,
            Protocol::A2a => {
                let agent = match A2a::known(wire, handle) {
                    Ok(agent) => agent,
                    // A card that cannot be read now implies nothing about the task.
                    Err(wire) => match A2a::read(wire).await {
                        Ok((agent, _)) => agent,
                        Err(ToolError::Final(why)) => return Err(ToolError::Failed(why)),
                        Err(error) => return Err(error),
                    },
                };
                agent.cancel(handle).await
            }
        }
    }

    fn engaging(&self, address: Url, key: &SecretRef) -> Engaging {
        let key = SecretHeader { secret: key.clone(), prefix: "Bearer ".to_owned() };
        let headers = BTreeMap::from([("authorization".to_owned(), HeaderText::Secret(key))]);
        Engaging::new(Wire::new(address, headers, self.client.clone()))
    }

    async fn read(&self, address: &Url, key: &SecretRef) -> Result<AgentDefinition, String> {
        let request = self.client.get(address.clone()).header(ACCEPT, "application/yaml");
        let response = request.header(AUTHORIZATION, bearer(key)?).send().await;
        let response = response.map_err(|error| format!("{address}: {}", outbound::describe(&error)))?;
        let status = response.status();
        if !status.is_success() {
            let hint = if status.is_redirection() { " (redirects are not followed)" } else { "" };
            return Err(format!("{address} answered with status {}{hint}", status.as_u16()));
        }
        let body = outbound::read_body(response, MOST_BYTES).await;
        let body = body.map_err(|error| format!("{address}: {error}"))?;
        let source =
            String::from_utf8(body).map_err(|_| format!("{address} answered with what is no text"))?;
        // A hostile document can take a while to read.
        let reading = turnstone_blocking::run(move || turnstone_specs::read(&source, None));
        match reading.await {
            Ok(Ok((definition, _))) => Ok(definition),
            Ok(Err(problems)) => {
                let first = problems.first().map(ToString::to_string).unwrap_or_default();
                Err(format!("{address} answered with no usable agent: {first}"))
            }
            Err(_) => Err(format!("{address} answered with what could not be read to its end")),
        }
    }
}

/// Returns the key in the form of a request's header.
pub(super) fn bearer(key: &SecretRef) -> Result<HeaderValue, String> {
    let secret = key.resolve()?;
    let value = HeaderValue::try_from(format!("Bearer {}", secret.expose()));
    let mut value = value.map_err(|_| format!("the secret {key} cannot be sent in a header"))?;
    value.set_sensitive(true);
    Ok(value)
}
