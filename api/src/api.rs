//! The parts of the API, and its router.

use crate::access::{Access, AccessTable, UndeclaredAccess};
use crate::agent_protocol::RunStream;
use crate::audit_chain::RefusedRequests;
use crate::auth::Guarded;
use crate::doorbell::Bells;
use crate::metrics::Metrics;
use crate::names::Names;
use crate::ojs::schemas::SchemaBook;
use crate::principals::{ConfiguredKeys, Keyring, Principals};
use crate::shared_stream::Streams;
use crate::stream::Followed;
use crate::{
    a2a, agent_protocol, agents, artifacts, audit_chain, auth, batches, budgets, credentials, docs,
    engagements, fleet, freeze, ids, keys, ojs, probes, query, reply, reviews, stamp,
};
use axum::Router;
use axum::http::Method;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::get;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::{Clock, EngagementId, Ids, Timestamp};
use turnstone_ojs::attest::Signer;
use turnstone_specs::Reach;
use turnstone_specs::agent_spec::Flows;
use turnstone_store::{EventFilter, Store};
use utoipa_axum::router::OpenApiRouter;

/// The default limit of a body, in bytes (OJS HTTP binding §3: at least 1 MiB).
pub const DEFAULT_MAX_BODY_BYTES: usize = 1024 * 1024;

/// The settings of the API.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// The address to listen on. An address that is not loopback needs a key: see [`crate::check_exposure`].
    pub bind: SocketAddr,
    /// The keys of the configuration. A client must present one of them; without any, every client that can reach the
    /// address has access. The keys of other servers are among them; the depth, budget and user that these servers send
    /// are trusted.
    pub keys: ConfiguredKeys,
    /// The key that signs receipts. Without it the fleet makes a key of its own and keeps it in the store.
    pub attest_key: Option<Signer>,
    /// True if it is served over TLS.
    pub tls: bool,
    /// Larger bodies are refused with 413.
    pub max_body_bytes: usize,
    /// True if `POST /ojs/v1/admin/reset` exists, which deletes everything.
    pub enable_reset: bool,
    /// True if a job of an agent must name a registered agent.
    pub require_agent: bool,
    /// True if webhooks may name addresses outside of the public internet.
    pub private_webhooks: bool,
    /// The hosts that agents may name as `oagent://host/path/name`: `host` or `host:port`. None by default.
    pub remote_hosts: Vec<String>,
    /// The users and groups who may be named as reviewers; any user by default.
    pub reviewers: Option<Vec<String>>,
    /// True if the principal that submitted a job may not answer its reviews.
    pub separate_duties: bool,
    /// The currency of the price table, if there is one: budgets in money must use it.
    pub currency: Option<String>,
    /// The MCP servers of the workers: agents may name their tools as `<server>.<tool>`.
    pub mcp_servers: Vec<String>,
    /// The tools that take no credentials: no capability of theirs has a `static_identity`.
    pub keyless_tools: Vec<String>,
    /// The programs and addresses that Agent Spec documents may use; by default only the workers check them.
    pub reach: Option<Reach>,
}

impl Default for ApiOptions {
    fn default() -> Self {
        Self {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            keys: ConfiguredKeys::default(),
            attest_key: None,
            tls: false,
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
            enable_reset: false,
            require_agent: false,
            private_webhooks: false,
            remote_hosts: Vec::new(),
            reviewers: None,
            separate_duties: false,
            currency: None,
            mcp_servers: Vec::new(),
            keyless_tools: Vec::new(),
            reach: None,
        }
    }
}

/// Everything the endpoints need.
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
    /// The kind of store, as health and manifest name it: `sqlite`.
    pub backend: String,
    /// Set-up.
    pub options: ApiOptions,
    /// Cancelled when the process drains: readiness ends, and so do event streams.
    pub shutdown: CancellationToken,
}

/// The state that the endpoints share.
pub(crate) struct App {
    pub(crate) api: Api,
    pub(crate) started_at: Timestamp,
    /// The metrics for Prometheus.
    pub(crate) metrics: Option<Metrics>,
    /// The audit entries of refused requests.
    pub(crate) refused: RefusedRequests,
    /// Keys, and the principals that they open.
    pub(crate) principals: Principals,
    /// Compiled schemas of arguments.
    pub(crate) schemas: SchemaBook,
    /// Flows that were used lately.
    pub(crate) flows: Flows,
    /// The key that signs receipts, once it is needed.
    pub(crate) signer: OnceCell<Signer>,
    /// The secret that makes ids of names, once it is needed.
    pub(crate) names: OnceCell<Names>,
    /// The notifications for the followers of a stream.
    pub(crate) bells: Arc<Bells>,
    /// Streams of events that are followed.
    pub(crate) feeds: Streams<EventFilter, Followed>,
    /// Runs that are followed.
    pub(crate) runs: Streams<EngagementId, RunStream>,
}

pub(crate) type Shared = Arc<App>;

impl Api {
    /// Returns the router with all endpoints. Every response, errors and panics included, has the headers and the error
    /// shape of the OJS HTTP binding.
    ///
    /// # Errors
    /// An operation does not declare the roles and the scope that it needs.
    pub fn router(self) -> Result<Router, UndeclaredAccess> {
        let started_at = self.clock.now();
        let reset = if self.options.enable_reset { ojs::reset() } else { Router::new() };
        let keyring = Keyring::new(self.store.keys.clone(), Arc::clone(&self.clock), self.shutdown.clone());
        let app = Arc::new(App {
            refused: RefusedRequests::new(self.store.audit.clone()),
            principals: Principals::of(&self.options, keyring),
            bells: Bells::new(self.store.clone(), self.shutdown.clone()),
            feeds: Streams::default(),
            runs: Streams::default(),
            api: self,
            started_at,
            metrics: Metrics::started(),
            schemas: SchemaBook::default(),
            flows: Flows::default(),
            signer: OnceCell::new(),
            names: OnceCell::new(),
        });
        let (routes, document) = OpenApiRouter::with_openapi(docs::frame())
            .merge(ojs::routes())
            .merge(a2a::routes())
            .merge(agents::routes())
            .merge(agent_protocol::routes())
            .merge(artifacts::routes())
            .merge(engagements::routes())
            .merge(batches::routes())
            .merge(budgets::routes())
            .merge(credentials::routes())
            .merge(keys::routes())
            .merge(audit_chain::routes())
            .merge(reviews::routes())
            .merge(fleet::routes())
            .merge(freeze::routes())
            .merge(ids::routes())
            .merge(probes::routes())
            .split_for_parts();
        let document = Arc::new(docs::finish(document));
        let access = AccessTable::of(&document)?.with(Method::POST, ojs::RESET, Access::FLEET_ADMIN);
        let guarded = Guarded { app: Arc::clone(&app), access: Arc::new(access) };
        Ok(routes
            .route_layer(from_fn_with_state(query::Described::by(&document), query::check))
            .merge(reset)
            .route("/openapi.json", get(move || async move { docs::answer(&document) }))
            .fallback(reply::unknown_route)
            .method_not_allowed_fallback(reply::wrong_method)
            .with_state(app.clone())
            .layer(from_fn_with_state(guarded, auth::guard))
            .layer(from_fn(stamp::check_version))
            .layer(CatchPanicLayer::custom(reply::panicked))
            .layer(from_fn_with_state(app, stamp::stamp)))
    }
}
