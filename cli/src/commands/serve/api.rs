//! `turnstone api`: the HTTP side of a fleet.

use super::agents::{self, KnownTools, Registered};
use super::budgets;
use super::equipment;
use super::renewal::Renewal;
use super::started::Started;
use super::{Farewell, Ground, Listening, Service, ServicePart, Signals};
use crate::commands::Session;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use anyhow::Context as _;
use clap::Args;
use std::future::pending;
use std::process::ExitCode;
use std::sync::Arc;
use turnstone_api::{Api, ApiOptions};
use turnstone_domain::agent::{ToolRuleBook, ToolSpec};
use turnstone_domain::{Clock, Ids};
use turnstone_specs::Reach;
use turnstone_store::Store;
use turnstone_worker::tool::{RemoteConfig, Toolbox};

/// `turnstone api`.
#[derive(Clone, Debug, Args)]
pub struct ApiArgs {
    /// The address and port to listen on; port 0 takes a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub bind: Option<String>,
    /// Let `POST /ojs/v1/admin/reset` delete everything: for test suites, and on loopback addresses alone
    #[arg(long)]
    pub enable_reset: bool,
}

impl ApiArgs {
    /// Returns the values of the flags, by configuration key.
    #[must_use]
    pub fn overrides(&self) -> Vec<(&'static str, String)> {
        self.bind.iter().map(|bind| ("server.bind", bind.clone())).collect()
    }
}

/// The parts of the API, beside its listener.
pub struct Materials {
    /// The store, which connects the parts of the fleet.
    pub store: Store,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn Ids>,
    /// The tools that agents and jobs may name.
    pub tools: Vec<ToolSpec>,
    /// The MCP servers whose tools they may name.
    pub mcp_servers: Vec<String>,
    /// The tools that take no credentials.
    pub keyless_tools: Vec<String>,
    /// The rules for the calls of tools.
    pub tool_rules: ToolRuleBook,
    /// The programs and addresses that Agent Spec documents may use.
    pub reach: Reach,
    /// The kind of store, as health and manifest name it.
    pub backend: &'static str,
}

/// Returns the API as a part of this process.
#[must_use]
pub fn part(listening: Listening, materials: Materials) -> ServicePart {
    ServicePart::start("api", |shutdown| {
        let Listening {
            listener,
            address,
            keys,
            issuers,
            caps,
            failed_logins_per_minute,
            attest_key,
            trusted_keys,
            enable_reset,
            require_agent,
            fan_out,
            private_webhooks,
            tls,
            remote_hosts,
            reviewers,
            separate_duties,
            currency,
            limits,
        } = listening;
        let Materials { store, clock, ids, tools, mcp_servers, keyless_tools, tool_rules, reach, backend } =
            materials;
        let options = ApiOptions {
            bind: address,
            keys,
            issuers,
            caps,
            failed_logins_per_minute,
            attest_key,
            trusted_keys,
            enable_reset,
            require_agent,
            fan_out,
            private_webhooks,
            remote_hosts,
            reviewers,
            separate_duties,
            currency,
            mcp_servers,
            keyless_tools,
            tool_rules,
            reach: Some(reach),
            tls: tls.is_some(),
            ..ApiOptions::default()
        };
        let backend = backend.to_owned();
        let api = Api { store, clock, ids, tools, backend, options, shutdown: shutdown.clone() };
        let router = api.router();
        async move {
            let serving = turnstone_api::serve(listener, tls, router?, limits, shutdown);
            serving.await.context("the listener failed")
        }
    })
}

/// Serves until a signal comes, then drains.
///
/// # Errors
/// It could not be started, or failed.
pub async fn run(config: Config, enable_reset: bool, session: &Session) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen().context("signals cannot be listened to")?;
    let Some(service) = signals.or(Box::pin(start(&config, enable_reset, session))).await else {
        return Ok(Exit::Interrupted.into());
    };
    let farewell = Farewell {
        stopping: "stopping: no new requests, those in flight are answered, event streams end (again to stop at once)",
        stopped: "stopped",
    };
    service?.run(signals, &session.output, farewell, pending()).await
}

async fn start(config: &Config, enable_reset: bool, session: &Session) -> anyhow::Result<Service> {
    let wrong = |problem: String| {
        Failure::usage(problem).hint("`turnstone config show` says where each value comes from")
    };
    let documents = config.agents.dir.as_deref().map(agents::documents).transpose()?.unwrap_or_default();
    let listening = Listening::start(config, enable_reset, 0).await?;
    let renewal = Renewal::of(config, false).with_api(&listening);
    renewal.on_hangup().context("signals cannot be listened to")?;
    let Ground { store, clock, ids } = Ground::join(config).await?;
    let own = equipment::own_addresses(config, Some(listening.address))?;
    let toolbox = Toolbox::avoiding(own)
        .with_tools(&config.tools, Arc::clone(&clock))
        .and_then(|toolbox| toolbox.with_mcp(&config.mcp, &clock))
        // Documents are checked against it when they are registered.
        .and_then(|toolbox| toolbox.with_policy(config.tool_policy.clone(), &clock))
        // Nothing is called from here, so that no authority is needed.
        .and_then(|toolbox| toolbox.with_remote(&RemoteConfig { ca: None, ..config.remote.clone() }, &clock))
        .and_then(|toolbox| equipment::with_rules(toolbox, config))
        .map_err(wrong)?;
    let (known, tools) =
        (KnownTools::of(&toolbox, &config.remote.host_names(), config.reviews.names()), toolbox.specs());
    budgets::apply(config, &store, clock.now()).await?;
    if !documents.is_empty() {
        let registered: Registered =
            agents::register(&store, documents, known.clone(), false, clock.now()).await?;
        registered.print_problems();
    }
    let url = listening.url();
    let line = format!("turnstone listens on {url}");
    let part = part(
        listening,
        Materials {
            store,
            clock,
            ids,
            tools,
            mcp_servers: known.servers,
            keyless_tools: known.keyless,
            tool_rules: known.rules,
            reach: known.reach,
            backend: "postgres",
        },
    );
    Started { url: Some(url), ..Started::new("api", line) }.print(&session.output)?;
    Ok(Service::of(vec![part]))
}
