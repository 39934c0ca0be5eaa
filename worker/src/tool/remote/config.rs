//! `[remote]`: which other servers' agents may be asked, and which other servers may ask ours.

use crate::tool::header::HeaderText;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use turnstone_telemetry::SecretRef;

/// `[remote]`. Nothing is asked anywhere, and nobody is believed, unless it says so.
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
    /// The servers that may use our agents, and are believed what they say of depth, budget and user.
    pub peers: BTreeMap<String, RemotePeer>,
    /// The agents that are asked over a protocol of agents, by the names of the tools that they are here.
    pub agents: BTreeMap<String, NamedConfig>,
    /// Whether hosts may be loopback or private ones.
    pub allow_private: bool,
    /// Certificates of authorities that are trusted besides those of the machine, in PEM; in the file relative to the file.
    pub ca: Option<PathBuf>,
    /// The longest that an agent elsewhere may take, in milliseconds; a call that takes longer is asked after again.
    pub timeout_ms: u64,
    /// The most tokens that are set aside for one call of an agent elsewhere.
    pub max_tokens: u32,
    /// The most turns of one worker that wait for other servers without a slot; more of them wait in theirs.
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
    /// Where the key is that the other server gave us.
    pub key: SecretRef,
}

/// `[remote.peers.<name>]`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemotePeer {
    /// Where the key is that we gave the other server.
    pub key: SecretRef,
}

/// How an agent is spoken to.
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
    /// How it is spoken to.
    pub protocol: Protocol,
    /// Where it is: the path before `/describe`, or the one before `/.well-known/agent-card.json`.
    pub url: String,
    /// For the model, instead of what the agent says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Sent with every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderText>,
    /// Whether it is on a Turnstone server that has this one among its `peers`: then depth, budget and user go with a call.
    #[serde(default)]
    pub peer: bool,
    /// The longest that a call may take, in milliseconds; that of `[remote]` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The most tokens that are set aside for a call; those of `[remote]` unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
}

impl RemoteConfig {
    /// The hosts by name.
    #[must_use]
    pub fn host_names(&self) -> Vec<String> {
        self.hosts.keys().cloned().collect()
    }
}
