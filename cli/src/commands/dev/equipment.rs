//! What the worker of `dev` works with: the configured providers and tools, and under `--demo` the examples beneath them.

use super::demo::ExampleTools;
use crate::config::Config;
use crate::failure::Failure;
use std::sync::Arc;
use turnstone_domain::Clock;
use turnstone_examples::DEMO_SCRIPT;
use turnstone_worker::model::{ModelDefaults, Providers, ScriptedModel};
use turnstone_worker::tool::Toolbox;

/// The name under which the demo's script serves.
pub const SCRIPTED: &str = "scripted";
/// The model of example agents that name none, while nobody but the script answers.
const DEMO_MODEL: &str = "demo";

/// Models and tools.
#[derive(Debug)]
pub struct Equipment {
    /// Models.
    pub providers: Providers,
    /// Tools.
    pub toolbox: Toolbox,
    /// Whether a script answers for every provider that is not configured.
    pub scripted: bool,
}

impl Equipment {
    /// What the configuration says; below it, with the example tools, what the demo brings along.
    ///
    /// # Errors
    /// What the configuration has wrong, with its section and key.
    pub fn of(
        config: &Config,
        examples: Option<&ExampleTools>,
        clock: Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let wrong = |problem: String| {
            Failure::usage(problem).hint("`turnstone config show` says where each value comes from")
        };
        let only_scripted = examples.is_some() && config.providers.is_empty();
        let by_default = only_scripted.then(|| DEMO_MODEL.to_owned());
        let defaults = ModelDefaults {
            provider: config.models.default_provider.clone(),
            model: config.models.default_model.clone().or(by_default),
        };
        let mut providers =
            Providers::from_config(&config.providers, defaults, &config.base).map_err(wrong)?;
        let mut tools = config.tools.clone();
        if let Some(examples) = examples {
            let script = ScriptedModel::from_yaml(DEMO_SCRIPT).map_err(|problem| {
                Failure::failed(format!("the demo's script is not well-formed: {problem}"))
            })?;
            providers.set_catch_all(SCRIPTED, Arc::new(script));
            for (name, tool) in examples.tools()? {
                tools.entry(name).or_insert(tool);
            }
        }
        let toolbox = Toolbox::from_config(&tools, clock).map_err(wrong)?;
        Ok(Self { providers, toolbox, scripted: examples.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        Equipment::of(&config(toml), Some(&examples), Arc::new(SystemClock)).unwrap()
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
