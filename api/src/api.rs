//! The options and the parts of the API, and the state that its endpoints share.

use crate::agent_protocol::stream::run::RunStream;
use crate::audit_chain::refused::RefusedRequests;
use crate::caps::{Caps, OpenStreams};
use crate::doorbell::Bells;
use crate::metrics::Metrics;
use crate::names::Names;
use crate::ojs::schemas::book::SchemaBook;
use crate::principals::{ConfiguredKeys, FailedLogins, Keyring, Principals};
use crate::request::BodyLimit;
use crate::shared_stream::Streams;
use crate::stream::Followed;
use crate::tokens::Issuer;
use axum::extract::FromRef;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use turnstone_domain::agent::{FanOutRules, ToolRuleBook, ToolSpec};
use turnstone_domain::review::SeparateDuties;
use turnstone_domain::{Clock, EngagementId, Ids, Timestamp};
use turnstone_ojs::attest::{PublicKey, Signer};
use turnstone_specs::Reach;
use turnstone_specs::agent_spec::Flows;
use turnstone_store::{EventFilter, Store, StoreError};
use utoipa_axum::router::OpenApiRouter;

/// The default limit of a body, in bytes (OJS HTTP binding §3: at least 1 MiB).
pub const DEFAULT_MAX_BODY_BYTES: usize = 1024 * 1024;

/// The default limit of failed logins, per minute and address.
pub const DEFAULT_FAILED_LOGINS: u32 = 60;

/// The settings of the API, from `[server]` and other sections of the configuration.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// The address to listen on. An address that is not loopback needs a key: see [`crate::check_exposure`].
    pub bind: SocketAddr,
    /// The keys of the configuration. A client must present one of them, a stored key, or a token of an issuer. Without any
    /// key or issuer, every client that can reach the address has access. The keys of other servers are among them; the
    /// depth, budget and user that these servers send are trusted.
    pub keys: ConfiguredKeys,
    /// The issuers whose tokens are accepted beside keys.
    pub issuers: Vec<Issuer>,
    /// The key that signs receipts and exports. Without it the fleet makes a key of its own and keeps it in the store.
    pub attest_key: Option<Signer>,
    /// The most that each tenant may create.
    pub caps: Caps,
    /// The keys of other installations whose exports are verified.
    pub trusted_keys: Vec<PublicKey>,
    /// True if it is served over TLS.
    pub tls: bool,
    /// The longest body of a request, in bytes; longer ones are refused with 413.
    pub max_body_bytes: usize,
    /// The most requests per minute of one address whose key or token opens nothing; 0 is no limit.
    pub failed_logins_per_minute: u32,
    /// True if `POST /ojs/v1/admin/reset` exists, which deletes all data but API keys, the audit and freezes.
    pub enable_reset: bool,
    /// True if a job of an agent must name a registered agent.
    pub require_agent: bool,
    /// The bounds for delegations: they refuse jobs that would join a tree which is full.
    pub fan_out: FanOutRules,
    /// True if webhooks may name addresses outside of the public internet.
    pub private_webhooks: bool,
    /// The hosts that agents may name as `oagent://host/path/name`: `host` or `host:port`. None by default.
    pub remote_hosts: Vec<String>,
    /// The users and groups that agents may name as reviewers; any user by default.
    pub reviewers: Option<Vec<String>>,
    /// The agents for whose jobs the submitting principal may not answer reviews.
    pub separate_duties: SeparateDuties,
    /// The currency of the price table, if there is one: budgets in money must use it.
    pub currency: Option<String>,
    /// The MCP servers of the workers: agents may name their tools as `<server>.<tool>`.
    pub mcp_servers: Vec<String>,
    /// The tools that take no credentials: a document that gives one of them a `static_identity` is refused.
    pub keyless_tools: Vec<String>,
    /// The rules for the calls of tools; none by default.
    pub tool_rules: ToolRuleBook,
    /// The programs and addresses that Agent Spec documents may use; by default only the workers check them.
    pub reach: Option<Reach>,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            keys: ConfiguredKeys::default(),
            issuers: Vec::new(),
            attest_key: None,
            caps: Caps::default(),
            trusted_keys: Vec::new(),
            tls: false,
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
            failed_logins_per_minute: DEFAULT_FAILED_LOGINS,
            enable_reset: false,
            require_agent: false,
            fan_out: FanOutRules::default(),
            private_webhooks: false,
            remote_hosts: Vec::new(),
            reviewers: None,
            separate_duties: SeparateDuties::default(),
            currency: None,
            mcp_servers: Vec::new(),
            keyless_tools: Vec::new(),
            tool_rules: ToolRuleBook::default(),
            reach: None,
        }
    }
}

/// The parts that the API is made of. [`Api::router`] makes the HTTP service of them.
#[derive(Clone)]
pub struct Api {
    /// The store of jobs, agents and reviews.
    pub store: Store,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// The source of new ids.
    pub ids: Arc<dyn Ids>,
    /// The tools that agents may refer to.
    pub tools: Vec<ToolSpec>,
    /// The kind of store, as `/ojs/v1/health` and the manifest name it: `sqlite` or `postgres`.
    pub backend: String,
    /// The settings.
    pub options: ApiOptions,
    /// Cancelled when the process drains: `/readyz` then answers 503, and streams of events end.
    pub shutdown: CancellationToken,
}

/// The state that the endpoints of one process share. What has to be the same in every process is in the store.
pub(crate) struct App {
    pub(crate) api: Api,
    pub(crate) started_at: Timestamp,
    /// The metrics for Prometheus.
    pub(crate) metrics: Option<Metrics>,
    /// Writes the audit entries of refused requests.
    pub(crate) refused: RefusedRequests,
    /// The open streams of events of each tenant.
    pub(crate) open_streams: OpenStreams,
    /// Keys, and the principals that they open.
    pub(crate) principals: Principals,
    /// The schemas of jobs' arguments, compiled when they are used first.
    pub(crate) schemas: SchemaBook,
    /// The most recently used flows of Agent Spec documents, parsed.
    pub(crate) flows: Flows,
    /// The key that signs receipts, once it is needed.
    pub(crate) signer: OnceCell<Signer>,
    /// The secret with which clients' names become ids of jobs ([`crate::names`]), once it is needed.
    pub(crate) names: OnceCell<Names>,
    /// Wakes the followers of a stream when it has new events.
    pub(crate) bells: Arc<Bells>,
    /// The streams of events with followers; clients with equal filters share one.
    pub(crate) feeds: Streams<EventFilter, Followed>,
    /// The runs of the Agent Protocol with followers.
    pub(crate) runs: Streams<EngagementId, RunStream>,
}

pub(crate) type Shared = Arc<App>;

/// Described endpoints of this state.
pub(crate) type Routes = OpenApiRouter<Shared>;

impl App {
    /// Returns the state of a process that begins to serve.
    pub(crate) fn new(api: Api) -> Self {
        let (clock, shutdown) = (&api.clock, &api.shutdown);
        let keyring = Keyring::new(api.store.keys.clone(), Arc::clone(clock), shutdown.clone());
        let (keys, issuers) = (api.options.keys.clone(), &api.options.issuers);
        let failed_logins = FailedLogins::new(api.options.failed_logins_per_minute);
        Self {
            started_at: clock.now(),
            metrics: Metrics::started(clock.now()),
            refused: RefusedRequests::new(api.store.audit.clone()),
            open_streams: OpenStreams::default(),
            principals: Principals::new(keys, issuers, keyring, failed_logins, Arc::clone(clock)),
            schemas: SchemaBook::new(api.store.schemas.clone(), Arc::clone(clock)),
            flows: Flows::default(),
            signer: OnceCell::new(),
            names: OnceCell::new(),
            bells: Bells::new(api.store.clone(), shutdown.clone()),
            feeds: Streams::default(),
            runs: Streams::default(),
            api,
        }
    }

    /// Returns the names of this installation.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn names(&self) -> Result<&Names, StoreError> {
        let (control, now) = (&self.api.store.control, self.api.clock.now());
        self.names.get_or_try_init(|| Names::made_or_found(control, now)).await
    }
}

impl FromRef<Shared> for BodyLimit {
    fn from_ref(app: &Shared) -> Self {
        Self(app.api.options.max_body_bytes)
    }
}
