//! The models and tools of a worker: those of the configuration, and under `dev --demo` the examples beneath them.

use super::programs;
use crate::config::Config;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use turnstone_domain::Clock;
use turnstone_store::limits::RateLimits;
use turnstone_worker::OwnAddresses;
use turnstone_worker::model::{ModelDefaults, ModelLimits, Providers, ScriptedModel};
use turnstone_worker::tool::{ToolConfig, Toolbox};

/// The provider name of a script beneath the configuration.
pub const SCRIPTED: &str = "scripted";

/// The defaults beneath the configuration.
pub struct Beneath {
    /// Answers for every provider that is not configured.
    pub script: ScriptedModel,
    /// The model of agents that name none, while only the script answers.
    pub model: &'static str,
    /// Tools.
    pub tools: BTreeMap<String, ToolConfig>,
}

/// Models and tools.
#[derive(Debug)]
pub struct Equipment {
    /// Models.
    pub providers: Providers,
    /// Tools.
    pub toolbox: Toolbox,
    /// True if a script answers for every provider that is not configured.
    pub scripted: bool,
}

/// Returns the failure for a problem of the configuration.
fn wrong(problem: String) -> Failure {
    Failure::usage(problem).hint("`turnstone config show` says where each value comes from")
}

/// Adds the rules of the configuration to all of its tools.
///
/// # Errors
/// The section that is wrong.
pub fn with_rules(toolbox: Toolbox, config: &Config) -> Result<Toolbox, String> {
    toolbox.with_rules(config.tool_rules.clone(), config.reviews.names().as_deref())
}

/// Returns the addresses that tools never call: those of this process, and those of the API in the configuration.
/// `listening` is the address of the API in this process; without it, the configured one counts.
///
/// # Errors
/// An address of the configuration has no port.
pub fn own_addresses(config: &Config, listening: Option<SocketAddr>) -> Result<OwnAddresses, Failure> {
    let metrics = [config.worker.metrics_bind, config.scheduler.metrics_bind];
    let bound = std::iter::once(listening.unwrap_or(config.server.bind)).chain(metrics.into_iter().flatten());
    OwnAddresses::new(bound.collect(), &config.server.own_addresses)
        .map_err(|problem| wrong(format!("`server.own_addresses`: {problem}")))
}

impl Equipment {
    /// Sets up the configured models and tools, with defaults beneath them or without. No tool calls `own`.
    ///
    /// # Errors
    /// The problem of the configuration, with its section and key.
    pub fn of(
        config: &Config,
        beneath: Option<Beneath>,
        own: OwnAddresses,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Failure> {
        let only_scripted = beneath.as_ref().filter(|_| config.providers.is_empty());
        let by_default = only_scripted.map(|beneath| beneath.model.to_owned());
        let defaults = ModelDefaults {
            provider: config.models.default_provider.clone(),
            model: config.models.default_model.clone().or(by_default),
        };
        let mut providers =
            Providers::from_config(&config.providers, defaults, &config.base).map_err(wrong)?;
        let mut tools = config.tools.clone();
        let scripted = beneath.is_some();
        if let Some(beneath) = beneath {
            providers.set_catch_all(SCRIPTED, Arc::new(beneath.script));
            for (name, tool) in beneath.tools {
                tools.entry(name).or_insert(tool);
            }
        }
        let programs = programs::programs(config).map_err(wrong)?;
        programs::check(config, &programs)?;
        let toolbox = Toolbox::avoiding(own)
            .with_programs(programs)
            .with_tools(&tools, Arc::clone(&clock))
            .and_then(|toolbox| toolbox.with_mcp(&config.mcp, &clock))
            .and_then(|toolbox| toolbox.with_policy(config.tool_policy.clone(), &clock))
            .and_then(|toolbox| toolbox.with_remote(&config.remote, &clock))
            .and_then(|toolbox| with_rules(toolbox, config))
            .map_err(wrong)?;
        Ok(Self { providers, toolbox, scripted })
    }

    /// Returns the rate limits that the configuration sets for these providers.
    ///
    /// # Errors
    /// The section that is wrong.
    pub fn limits(&self, config: &Config, keeper: Arc<dyn RateLimits>) -> Result<ModelLimits, Failure> {
        ModelLimits::from_config(&config.limits, &self.providers, keeper).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::dev::demo::{DEMO_MODEL, ExampleTools};
    use turnstone_domain::SystemClock;
    use turnstone_domain::agent::ModelRef;

    fn config(toml: &str) -> Config {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        std::fs::write(file.path(), toml).unwrap();
        let layers = crate::config::Layers { file: Some(file.path().into()), ..Default::default() };
        layers.load().unwrap().config
    }

    async fn equipped(toml: &str) -> Equipment {
        crate::client::install_tls();
        let examples = ExampleTools::start().await.unwrap();
        let (beneath, own) = (examples.beneath().unwrap(), OwnAddresses::default());
        Equipment::of(&config(toml), Some(beneath), own, Arc::new(SystemClock)).unwrap()
    }

    #[tokio::test]
    async fn what_is_configured_takes_over_from_the_demo() {
        let gpt = ModelRef { provider: Some("openai".to_owned()), model: "gpt-4o".to_owned() };
        let bare = equipped("").await;
        assert_eq!(bare.providers.resolve(&gpt).unwrap().0, SCRIPTED);
        assert_eq!(bare.providers.default_model().unwrap().model, DEMO_MODEL);
        assert!(!bare.toolbox.get("web_search").unwrap().spec().description.contains("mine"));

        let own = equipped(
            "[providers.openai]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'\n\
             [tools.web_search]\ndescription = 'mine'\nurl = 'https://a.example/'",
        )
        .await;
        assert_eq!(own.providers.resolve(&gpt).unwrap().0, "openai");
        assert!(own.providers.default_model().is_none(), "a real provider has no model called demo");
        assert_eq!(own.toolbox.get("web_search").unwrap().spec().description, "mine");
        assert!(own.toolbox.get("book-flight").is_some());
    }
}
