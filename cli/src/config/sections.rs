//! The sections of the configuration, with their defaults. Unknown keys are refused everywhere.

use super::address::Address;
use super::budgets::BudgetsConfig;
use super::encryption::EncryptionConfig;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use turnstone_api::{Caps, DEFAULT_FAILED_LOGINS, IssuerConfig};
use turnstone_domain::agent::{FanOut, FanOutRules, OwnFanOut, ToolRuleBook};
use turnstone_domain::artifact::ArtifactLimits;
use turnstone_domain::review::ReviewRules;
use turnstone_telemetry::{LogFormat, SecretRef};
use turnstone_worker::model::estimates::Estimates;
use turnstone_worker::model::{LimitConfig, PriceConfig, ProviderConfig};
use turnstone_worker::options::OnContextOverflow;
use turnstone_worker::tool::{McpConfig, RemoteConfig, ToolConfig, ToolPolicy};

/// The effective configuration.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `[client]`: which server the commands talk to.
    pub client: ClientConfig,
    /// `[server]`: the server itself.
    pub server: ServerConfig,
    /// `[caps]`: the most that each tenant may create.
    pub caps: Caps,
    /// `[store]`: the database that the processes of a fleet share.
    pub store: StoreConfig,
    /// `[encryption]`: the keys that encrypt the stored data.
    pub encryption: EncryptionConfig,
    /// `[redis]`: the accelerator that the processes of a fleet may share.
    pub redis: RedisConfig,
    /// `[worker]`: the limits of the worker.
    pub worker: WorkerConfig,
    /// `[scheduler]`: the retention and the probes of the scheduler.
    pub scheduler: SchedulerConfig,
    /// `[webhooks]`: the delivery of events.
    pub webhooks: WebhooksConfig,
    /// `[models]`: the default model, and the limits of its answers.
    pub models: ModelsConfig,
    /// `[agents]`: the agents that are registered at start-up.
    pub agents: AgentsConfig,
    /// `[attest]`: the key that signs receipts and exports.
    pub attest: AttestConfig,
    /// `[log]`: the log on standard error.
    pub log: LogConfig,
    /// `[providers.<name>]`: the model providers.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// `[limits."<provider>/<model>"]`: the rate limits of models.
    pub limits: BTreeMap<String, LimitConfig>,
    /// `[prices."<provider>/<model>"]`: the prices of models.
    pub prices: BTreeMap<String, PriceConfig>,
    /// `[budgets."<name>"]`: limits on the spending of a tenant, an agent, on a model, or of the fleet.
    pub budgets: BudgetsConfig,
    /// `[tools.<name>]`: the tools that agents may name.
    pub tools: BTreeMap<String, ToolConfig>,
    /// `[tool_policy]`: the addresses and secrets that manifests may use beyond the registry.
    pub tool_policy: ToolPolicy,
    /// `[tool_rules.<name>]`: who may call a tool, and the restrictions of every call.
    pub tool_rules: ToolRuleBook,
    /// `[reviews]`: reviewers, their groups, and the outcome without an answer.
    pub reviews: ReviewRules,
    /// `[remote]`: other servers whose agents may be called, and other servers that may call ours.
    pub remote: RemoteConfig,
    /// `[mcp.<name>]`: the MCP servers whose tools agents may name as `<name>.<tool>`.
    pub mcp: BTreeMap<String, McpConfig>,
    /// The directory of the configuration file, which paths in it are relative to; empty is the current directory.
    #[serde(skip)]
    pub base: PathBuf,
    /// The configuration file, if there is one.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

/// `[client]`: which server the commands talk to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClientConfig {
    /// The server's address (`--url`, `TURNSTONE_URL`).
    pub url: String,
    /// Reference to the API key (`--api-key-ref`); without it `TURNSTONE_API_KEY` is used when it is set.
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
    /// The data directory; in the file relative to the file.
    pub data: PathBuf,
    /// The address and port to listen on.
    pub bind: SocketAddr,
    /// Further addresses of this API that no tool may call, each with its port: those of other `api` processes and of
    /// proxies.
    pub own_addresses: Vec<String>,
    /// The keys of which clients must present one; an empty list allows every client.
    pub api_keys: Vec<SecretRef>,
    /// `[server.issuers.<name>]`: the issuers whose tokens are accepted beside keys.
    pub issuers: BTreeMap<String, IssuerConfig>,
    /// The certificate for TLS; without it, the server uses plain HTTP.
    pub tls: Option<TlsFiles>,
    /// The most clients that are connected at once; fewer where the limit of open files is lower.
    pub max_connections: u32,
    /// The most requests per minute of one address whose key or token opens nothing; 0 is no limit.
    pub failed_logins_per_minute: u32,
    /// The time limit for the head of a request.
    pub header_timeout_ms: u64,
    /// The longest pause of a request's body.
    pub body_timeout_ms: u64,
    /// How long a connection may wait for its next request.
    pub idle_timeout_ms: u64,
}

/// `[server.tls]`: certificate and key in PEM; in the file relative to the file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFiles {
    /// The certificate, with those of its authorities below it.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            data: PathBuf::from("./.turnstone"),
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            own_addresses: Vec::new(),
            api_keys: Vec::new(),
            issuers: BTreeMap::new(),
            tls: None,
            max_connections: 4_096,
            failed_logins_per_minute: DEFAULT_FAILED_LOGINS,
            header_timeout_ms: 10_000,
            body_timeout_ms: 30_000,
            idle_timeout_ms: 75_000,
        }
    }
}

/// `[attest]`: the key that signs receipts and exports, and the keys that verify those of others.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttestConfig {
    /// Reference to the ed25519 key: 32 bytes in base64. Without it the fleet makes one and keeps it in the store.
    pub key: Option<SecretRef>,
    /// The public keys of other installations whose exports are verified: 32 bytes in base64 each.
    pub trusted: Vec<String>,
}

/// `[store]`: the database that the processes of a fleet share; `turnstone dev` has one of its own.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StoreConfig {
    /// The PostgreSQL database, as it is or by reference (`DATABASE_URL`).
    pub url: Option<Address>,
    /// The most connections that one process opens.
    pub connections: u32,
    /// How many of them commit the writes of this process's turns.
    pub writers: u32,
    /// True with a pooler in transaction mode, such as PgBouncer: then no state is kept in a session.
    pub transaction_pooler: bool,
    /// True if the database notifies of work (`LISTEN`); otherwise the processes only poll.
    pub listen: bool,
    /// The longest that one statement may take, in milliseconds; the database ends it then.
    pub statement_timeout_ms: u64,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            url: None,
            connections: 8,
            writers: 2,
            transaction_pooler: false,
            listen: true,
            statement_timeout_ms: 25_000,
        }
    }
}

/// `[redis]`: the accelerator that the processes of a fleet may share. Everything works without it.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RedisConfig {
    /// The server and the number of its database, as it is or by reference (`REDIS_URL`).
    pub url: Option<Address>,
}

/// `[worker]`: the limits of the worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkerConfig {
    /// Its name, unique in the fleet; without one it is made of the machine's name, the process id and four random
    /// characters.
    pub name: Option<String>,
    /// The most turns in flight at once.
    pub slots: u32,
    /// The queues it serves; `*` is every queue.
    pub queues: Vec<String>,
    /// How long a worker that stops responding keeps its jobs, in milliseconds.
    pub lease_ms: u64,
    /// How long a stopping worker lets turns reach their next checkpoint, in milliseconds.
    pub drain_grace_ms: u64,
    /// The address and port of this worker's metrics, `/livez` and `/readyz`, if they are wanted.
    pub metrics_bind: Option<SocketAddr>,
    /// The time to answer of an OpenAgentSpec agent's reviewer, in milliseconds; after it the review counts as
    /// rejected. Without end by default.
    pub review_deadline_ms: Option<u64>,
    /// The largest file that an agent may make, in bytes.
    pub artifact_max_bytes: u64,
    /// The most bytes of all files of an engagement.
    pub artifacts_max_bytes: u64,
}

impl WorkerConfig {
    /// Returns the queues by name; `None` is every queue.
    #[must_use]
    pub fn named_queues(&self) -> Option<&[String]> {
        (!self.queues.iter().any(|queue| queue == "*")).then_some(&self.queues)
    }
}

impl Default for WorkerConfig {
    fn default() -> Self {
        let artifacts = ArtifactLimits::default();
        Self {
            name: None,
            slots: 64,
            queues: vec!["*".to_owned()],
            lease_ms: 15_000,
            drain_grace_ms: 10_000,
            metrics_bind: None,
            review_deadline_ms: None,
            artifact_max_bytes: artifacts.each,
            artifacts_max_bytes: artifacts.engagement,
        }
    }
}

/// `[scheduler]`: the retention and the probes of the scheduler.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulerConfig {
    /// How many days engagements and plain jobs are kept after their end; 0 keeps them for ever.
    pub retention_days: u32,
    /// The address and port of `/livez`, `/readyz` and `/metrics`, if they are wanted.
    pub metrics_bind: Option<SocketAddr>,
}

impl SchedulerConfig {
    /// Returns how long they are kept; `None` is for ever.
    #[must_use]
    pub fn retention(&self) -> Option<Duration> {
        (self.retention_days > 0).then(|| Duration::from_secs(u64::from(self.retention_days) * 24 * 60 * 60))
    }
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self { retention_days: 30, metrics_bind: None }
    }
}

/// `[webhooks]`: the delivery of events.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WebhooksConfig {
    /// True if webhooks may name addresses outside of the public internet. The API checks when one is made, the
    /// scheduler at every delivery: set it for both.
    pub allow_private: bool,
    /// How long a receiver may take to answer, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        Self { allow_private: false, timeout_ms: 10_000 }
    }
}

/// `[models]`: the default model, and the limits of its answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelsConfig {
    /// The default provider of models that are named without one.
    pub default_provider: Option<String>,
    /// The model of an agent that names none.
    pub default_model: Option<String>,
    /// The longest that one model call may take, in milliseconds, unless the agent sets less.
    pub timeout_ms: u64,
    /// The most tokens of one answer, unless the agent or the job sets another limit.
    pub max_tokens: u32,
    /// The most tokens of a prompt and its answer together, by `provider/model`. A higher count of a call is not believed.
    pub context_tokens: BTreeMap<String, u32>,
    /// The answer to a prompt that is longer than the model's context.
    pub on_context_overflow: OnContextOverflow,
}

impl Default for ModelsConfig {
    fn default() -> Self {
        Self {
            default_provider: None,
            default_model: None,
            timeout_ms: 120_000,
            max_tokens: 4_096,
            context_tokens: BTreeMap::new(),
            on_context_overflow: OnContextOverflow::default(),
        }
    }
}

impl ModelsConfig {
    /// Checks the names of models and the sizes of their contexts.
    ///
    /// # Errors
    /// A sentence that names the wrong one.
    pub fn check(&self) -> Result<(), String> {
        let is_whole = |(provider, model): (&str, &str)| !provider.is_empty() && !model.is_empty();
        let is_right = |model: &str, tokens: u32| tokens > 0 && model.split_once('/').is_some_and(is_whole);
        match self.context_tokens.iter().find(|(model, tokens)| !is_right(model, **tokens)) {
            Some((model, _)) => Err(format!(
                "`{model}` must be PROVIDER/MODEL, such as openai/gpt-4o-mini, with at least 1 token"
            )),
            None => Ok(()),
        }
    }

    /// Returns the knowledge about models.
    #[must_use]
    pub fn estimates(&self) -> Estimates {
        let contexts = self.context_tokens.iter().map(|(model, tokens)| (model.clone(), i64::from(*tokens)));
        Estimates::of(contexts.collect())
    }
}

/// `[agents]`: the agents that are registered at start-up, and the bounds for delegations.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsConfig {
    /// The directory of their files (`.yaml`, `.yml`, `.json`); in the file relative to the file. A file that is no
    /// usable agent is reported with line and column and left out; the others are registered.
    pub dir: Option<PathBuf>,
    /// True to refuse jobs that call a model without naming a registered agent.
    pub require_agent: bool,
    /// The most jobs of an engagement and its delegates to any depth. The iterations of a flow count as jobs.
    pub max_jobs_per_tree: u32,
    /// The most agents that a model may call in one turn.
    pub max_children_per_turn: u32,
    /// Other bounds for registered agents, by their names.
    pub limits: BTreeMap<String, OwnFanOut>,
}

impl Default for AgentsConfig {
    fn default() -> Self {
        let FanOut { max_jobs_per_tree, max_children_per_turn } = FanOut::DEFAULT;
        let (dir, require_agent, limits) = (None, false, BTreeMap::new());
        Self { dir, require_agent, max_jobs_per_tree, max_children_per_turn, limits }
    }
}

impl AgentsConfig {
    /// Returns the bounds for delegations.
    #[must_use]
    pub fn fan_out(&self) -> FanOutRules {
        let (max_jobs_per_tree, max_children_per_turn) = (self.max_jobs_per_tree, self.max_children_per_turn);
        FanOutRules { all: FanOut { max_jobs_per_tree, max_children_per_turn }, of: self.limits.clone() }
    }
}

/// `[log]`: the log on standard error.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LogConfig {
    /// How a line looks: `pretty` or `json`.
    pub format: LogForm,
    /// The filter, such as `info,turnstone_worker=debug`. Left out: `warn,turnstone=info`, and only warnings where
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
