//! `[remote]`: the servers whose agents may be called, and the servers that may call ours.

use crate::tool::header::HeaderText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use turnstone_telemetry::SecretRef;

/// `[remote]`. By default no other server is called, and none is trusted.
///
/// ```toml
/// [remote.hosts."agents.example.com"]
/// key = "env:KEY_THERE"
///
/// [remote.peers.office]
/// key = "env:KEY_OF_THE_OFFICE"
///
/// [remote.agents.researcher]
/// protocol = "a2a"
/// url = "https://research.example.com/agent"
/// headers = { Authorization = { secret = "env:RESEARCH_KEY", prefix = "Bearer " } }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RemoteConfig {
    /// The servers whose agents may be named: `host` or `host:port`.
    pub hosts: BTreeMap<String, RemoteHost>,
    /// The servers that may use our agents, and whose statements about depth, budget and user are trusted.
    pub peers: BTreeMap<String, RemotePeer>,
    /// The agents that are called by an agent protocol, by their names as tools here.
    pub agents: BTreeMap<String, NamedConfig>,
    /// True if hosts may be loopback or private ones.
    pub allow_private: bool,
    /// A file of certificates in PEM: authorities that are trusted besides those of the machine. In the
    /// configuration file the path is relative to that file.
    pub ca: Option<PathBuf>,
    /// The longest single wait for a remote agent, in milliseconds; after it the call waits again as a retry.
    pub timeout_ms: u64,
    /// The most tokens that are reserved for one call of a remote agent.
    pub max_tokens: u32,
    /// The most turns of one worker that wait for other servers without a slot; further turns keep their
    /// slots.
    pub waiting: usize,
}

impl Default for RemoteConfig {
    fn default() -> Self {
        Self {
            hosts: BTreeMap::new(),
            peers: BTreeMap::new(),
            agents: BTreeMap::new(),
            allow_private: false,
            ca: None,
            timeout_ms: 600_000,
            max_tokens: 100_000,
            waiting: 1_000,
        }
    }
}

/// `[remote.hosts."<host>"]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemoteHost {
    /// The reference of the key that the other server gave us.
    pub key: SecretRef,
}

/// `[remote.peers.<name>]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemotePeer {
    /// The reference of the key that we gave the other server.
    pub key: SecretRef,
    /// The tenant of its engagements; by default a peer is one of the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The agents that it may use; by default all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents: Option<Vec<String>>,
    /// The users that it may name; `*` means all, and by default it names none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<String>,
}

/// The protocol of a remote agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The Agent Protocol, draft of 2025: REST and server-sent events.
    AgentProtocol,
    /// A2A 1.0 over JSON-RPC.
    A2a,
}

/// `[remote.agents.<name>]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedConfig {
    /// Its protocol.
    pub protocol: Protocol,
    /// Its address: the path before `/describe`, or the one before `/.well-known/agent-card.json`.
    pub url: String,
    /// For the model, instead of the agent's own description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Headers of every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderText>,
    /// True if it is on a Turnstone server that has this one among its `peers`: then a call carries depth,
    /// budget and user.
    #[serde(default)]
    pub peer: bool,
    /// The longest single wait of a call, in milliseconds. Default: that of `[remote]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The most tokens that are reserved for a call. Default: those of `[remote]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

impl RemoteConfig {
    /// Returns the hosts by name.
    #[must_use]
    pub fn host_names(&self) -> Vec<String> {
        self.hosts.keys().cloned().collect()
    }
}
