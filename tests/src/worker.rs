//! Workers for tests: the product's own, over the test's model and tool servers.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::agent::ModelRef;
use turnstone_domain::budget::Amount;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Clock, Ids};
use turnstone_store::{Doorbell, Ledger};
use turnstone_worker::model::{ModelDefaults, PriceConfig, Prices, ProviderConfig, Providers};
use turnstone_worker::tool::{McpConfig, ToolConfig, ToolPolicy, Toolbox};
use turnstone_worker::{Deps, OwnAddresses, WorkerOptions};

/// The tools of the test's tool server: the name, and true if it is idempotent.
pub const TOOLS: &[(&str, bool)] =
    &[("search", true), ("book", false), ("hang", true), ("broken", false), ("web_search", true)];

/// The longest that a draining worker lets its turns continue. It is short, because many tests end with a
/// turn that hangs; a test of draining sets its own.
pub const DRAIN_GRACE: Duration = Duration::from_millis(500);

/// Returns the parts of a worker.
pub fn deps(
    worker_id: &str,
    store: (Arc<dyn Ledger>, Doorbell),
    clock: Arc<dyn Clock>,
    model_url: &str,
    tool_url: &str,
    slots: usize,
) -> Deps {
    let options = WorkerOptions {
        worker_id: worker_id.to_owned(),
        queues: vec!["*".to_owned()],
        slots,
        lease: Duration::from_secs(15),
        drain_grace: DRAIN_GRACE,
        model_timeout: Duration::from_secs(30),
        max_tokens: 1024,
        on_context_overflow: turnstone_worker::options::OnContextOverflow::default(),
        on_exceed: turnstone_domain::budget::OnExceed::Retry,
        raise_wait: Some(Duration::from_secs(7 * 86_400)),
        review_deadline: None,
        artifacts: turnstone_domain::artifact::ArtifactLimits::default(),
        fan_out: turnstone_domain::agent::FanOutRules::default(),
    };
    let ids: Arc<dyn Ids> = Arc::new(SystemIds);
    Deps::new(store, Arc::clone(&clock), ids, providers(model_url), toolbox(tool_url, clock), options)
}

/// The parts of a worker beside the test's tools.
#[derive(Deserialize, Default)]
#[serde(default, deny_unknown_fields)]
struct Settings {
    models: BTreeMap<String, PriceConfig>,
    tools: BTreeMap<String, Amount>,
    mcp: BTreeMap<String, McpConfig>,
    /// The only provider, if it is another one than the test's.
    provider: Option<ProviderConfig>,
}

/// Gives a worker prices, MCP servers and a provider:
/// `{"models": {"PROVIDER/MODEL": PRICE}, "tools": {"NAME": AMOUNT}, "mcp": {"NAME": SERVER}, "provider": PROVIDER}`.
pub fn with_settings(mut deps: Deps, settings: &str) -> Deps {
    let Settings { models, tools, mcp, provider } = serde_json::from_str(settings).expect("settings");
    if let Some(provider) = provider {
        deps.providers = serving(provider);
    }
    let clock = Arc::clone(&deps.clock);
    deps.toolbox = deps.toolbox.with_mcp(&mcp, &clock).expect("MCP servers");
    deps.with_prices(Prices::from_config(&models, tools).expect("prices of one currency"))
}

/// Returns the test's provider.
fn providers(model_url: &str) -> Providers {
    let config: ProviderConfig =
        serde_json::from_value(serde_json::json!({"kind": "openai", "base_url": model_url}))
            .expect("a provider");
    serving(config)
}

/// Returns this provider as `test`, which also serves every other name.
fn serving(config: ProviderConfig) -> Providers {
    let configs = BTreeMap::from([("test".to_owned(), config)]);
    let defaults = ModelDefaults { provider: Some("test".to_owned()), model: Some("test-model".to_owned()) };
    let mut providers =
        Providers::from_config(&configs, defaults.clone(), std::path::Path::new(".")).expect("providers");
    let wanted = ModelRef { provider: defaults.provider, model: String::new() };
    let (_, model) = providers.resolve(&wanted).expect("the provider");
    providers.set_catch_all("test", model);
    providers
}

/// Returns the tools of [`TOOLS`] at the tool server.
pub fn toolbox(tool_url: &str, clock: Arc<dyn Clock>) -> Toolbox {
    toolbox_avoiding(OwnAddresses::default(), tool_url, clock)
}

/// Returns the same tools, which never call these addresses.
pub fn toolbox_avoiding(own: OwnAddresses, tool_url: &str, clock: Arc<dyn Clock>) -> Toolbox {
    let configs: BTreeMap<String, ToolConfig> = TOOLS
        .iter()
        .map(|(name, idempotent)| {
            let config = serde_json::json!({
                "description": format!("the test tool {name}"),
                "input_schema": {"type": "object"},
                "method": "POST",
                "url": format!("{tool_url}/{name}"),
                "idempotent": idempotent,
                "allow_private": true,
                "timeout_ms": 60000,
            });
            ((*name).to_owned(), serde_json::from_value(config).expect("a tool"))
        })
        .collect();
    let toolbox = Toolbox::avoiding(own).with_tools(&configs, Arc::clone(&clock)).expect("a toolbox");
    // The servers of the tests are on this machine.
    let policy = ToolPolicy {
        allowed_hosts: vec!["127.0.0.1".to_owned()],
        allow_private: true,
        ..ToolPolicy::default()
    };
    toolbox.with_policy(policy, &clock).expect("a policy")
}
