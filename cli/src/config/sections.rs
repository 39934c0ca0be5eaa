//! The sections of the configuration, with their defaults. Unknown keys are refused everywhere.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use turnstone_telemetry::{LogFormat, SecretRef};
use turnstone_worker::model::ProviderConfig;
use turnstone_worker::tool::ToolConfig;

/// The effective configuration.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `[client]`: which server the commands talk to.
    pub client: ClientConfig,
    /// `[server]`: the server itself.
    pub server: ServerConfig,
    /// `[worker]`: what the worker takes on.
    pub worker: WorkerConfig,
    /// `[models]`: which model answers when nobody names one, and how much of it.
    pub models: ModelsConfig,
    /// `[agents]`: the agents that are registered at start-up.
    pub agents: AgentsConfig,
    /// `[log]`: what is logged to standard error.
    pub log: LogConfig,
    /// `[providers.<name>]`: the model providers.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// `[tools.<name>]`: the tools that agents may name.
    pub tools: BTreeMap<String, ToolConfig>,
    /// The directory of the configuration file, which paths in it are relative to; empty is the current directory.
    #[serde(skip)]
    pub base: PathBuf,
}

/// `[client]`: which server the commands talk to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientConfig {
    /// The server's address (`--url`, `TURNSTONE_URL`).
    pub url: String,
    /// Where the API key is (`--api-key-ref`); without it `TURNSTONE_API_KEY` is used when it is set.
    pub api_key: Option<SecretRef>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self { url: "http://127.0.0.1:8080".to_owned(), api_key: None }
    }
}

/// `[server]`: the server itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Where the data is kept; in the file relative to the file.
    pub data: PathBuf,
    /// The address and port to listen on.
    pub bind: SocketAddr,
    /// The keys that clients must present one of; empty lets everybody in.
    pub api_keys: Vec<SecretRef>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            data: PathBuf::from("./.turnstone"),
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            api_keys: Vec::new(),
        }
    }
}

/// `[worker]`: what the worker takes on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// The most turns in flight at once.
    pub slots: u32,
    /// The queues it serves; `*` is every queue.
    pub queues: Vec<String>,
    /// How long a silent worker keeps its jobs, in milliseconds.
    pub lease_ms: u64,
    /// How long a stopping worker lets turns reach their next checkpoint, in milliseconds.
    pub drain_grace_ms: u64,
}

impl WorkerConfig {
    /// The queues by name; `None` is every queue.
    #[must_use]
    pub fn named_queues(&self) -> Option<&[String]> {
        (!self.queues.iter().any(|queue| queue == "*")).then_some(&self.queues)
    }
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self { slots: 64, queues: vec!["*".to_owned()], lease_ms: 15_000, drain_grace_ms: 10_000 }
    }
}

/// `[models]`: which model answers when nobody names one, and how much of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelsConfig {
    /// The provider of a model that is named without one.
    pub default_provider: Option<String>,
    /// The model of an agent that names none.
    pub default_model: Option<String>,
    /// The longest that one model call may take, in milliseconds, unless the agent says less.
    pub timeout_ms: u64,
    /// The most tokens that one answer may have unless the agent or the job says otherwise.
    pub max_tokens: u32,
}

impl Default for ModelsConfig {
    fn default() -> Self {
        Self { default_provider: None, default_model: None, timeout_ms: 120_000, max_tokens: 4_096 }
    }
}

/// `[agents]`: the agents that are registered at start-up.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsConfig {
    /// The directory of their files (`.yaml`, `.yml`, `.json`); in the file relative to the file. A file that is no
    /// usable agent is reported with line and column and left out; the others are registered.
    pub dir: Option<PathBuf>,
}

/// `[log]`: what is logged to standard error.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// How a line looks: `pretty` or `json`.
    pub format: LogForm,
    /// What is logged, such as `info,turnstone_worker=debug`. Left out: `warn,turnstone=info`, and only warnings where
    /// `dev` shows a timeline on a terminal.
    pub filter: Option<String>,
}

/// How a line of the log looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogForm {
    /// For people.
    #[default]
    Pretty,
    /// One JSON object per line.
    Json,
}

impl From<LogForm> for LogFormat {
    fn from(form: LogForm) -> Self {
        match form {
            LogForm::Pretty => Self::Pretty,
            LogForm::Json => Self::Json,
        }
    }
}
