//! The providers of models, and the choice of the provider for a model.

use crate::breakers::BreakerConfig;
use crate::model::Model;
use crate::model::anthropic::Messages;
use crate::model::http::{Api, HttpModel, HttpProviderConfig, MaxTokensFields};
use crate::model::openai::ChatCompletions;
use crate::model::responses::Responses;
use crate::model::scripted::ScriptedModel;
use crate::tool::outbound;
use reqwest::Client;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use turnstone_domain::agent::ModelRef;
use turnstone_domain::agent::errors::Breaker;

/// A section `[providers.<name>]`.
///
/// ```toml
/// [providers.openai]
/// kind = "openai"
/// api_key = "env:OPENAI_API_KEY"
///
/// [providers.anthropic]
/// kind = "anthropic"
/// api_key = "env:ANTHROPIC_API_KEY"
/// concurrency = 8
///
/// [providers.local]
/// kind = "openai"
/// base_url = "http://127.0.0.1:11434/v1"
/// response_format = "json_object"
///
/// [providers.rehearsal]
/// kind = "scripted"
/// script = "rehearsal.yaml"
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ProviderConfig {
    /// Chat completions over HTTP.
    #[serde(deserialize_with = "section_of_chat_completions")]
    OpenAi(HttpProviderConfig),
    /// OpenAI's responses API over HTTP.
    #[serde(rename = "openai-responses", deserialize_with = "section::<Responses, _>")]
    Responses(HttpProviderConfig),
    /// Anthropic's messages API over HTTP.
    #[serde(deserialize_with = "section::<Messages, _>")]
    Anthropic(HttpProviderConfig),
    /// A script and no model.
    Scripted(ScriptedConfig),
}

/// Reads the section of a provider of chat completions, with its defaults.
fn section_of_chat_completions<'de, D>(deserializer: D) -> Result<HttpProviderConfig, D::Error>
where
    D: Deserializer<'de>,
{
    let mut config = HttpProviderConfig::deserialize(deserializer)?;
    let own = ChatCompletions::default().base_url();
    let address = config.base_url.get_or_insert_with(|| own.to_owned());
    let fields = MaxTokensFields::of_address(address, own);
    config.response_format.get_or_insert_default();
    config.max_tokens_field.get_or_insert(fields);
    only_kept::<ChatCompletions, D>(config)
}

/// Reads the section of a provider of another API, with its defaults.
fn section<'de, A, D>(deserializer: D) -> Result<HttpProviderConfig, D::Error>
where
    A: Api + Default,
    D: Deserializer<'de>,
{
    let mut config = HttpProviderConfig::deserialize(deserializer)?;
    config.base_url.get_or_insert_with(|| A::default().base_url().to_owned());
    let key = match &config {
        HttpProviderConfig { response_format: Some(_), .. } => "response_format",
        HttpProviderConfig { max_tokens_field: Some(_), .. } => "max_tokens_field",
        _ => return only_kept::<A, D>(config),
    };
    let problem = format!("`{key}` applies only to providers with kind = \"openai\"; remove it");
    Err(D::Error::custom(problem))
}

/// Refuses `store` for an API that keeps no answers.
fn only_kept<'de, A, D>(config: HttpProviderConfig) -> Result<HttpProviderConfig, D::Error>
where
    A: Api + Default,
    D: Deserializer<'de>,
{
    if config.store && !A::default().can_keep() {
        let problem = "`store` applies only to providers with kind = \"openai-responses\"; remove it";
        return Err(D::Error::custom(problem));
    }
    Ok(config)
}

impl ProviderConfig {
    /// Returns the settings of a provider over HTTP.
    #[must_use]
    pub fn http(&self) -> Option<&HttpProviderConfig> {
        match self {
            Self::OpenAi(config) | Self::Responses(config) | Self::Anthropic(config) => Some(config),
            Self::Scripted(_) => None,
        }
    }

    /// Returns the circuit breaker of its models; `None` is the default.
    fn breaker(&self) -> Option<BreakerConfig> {
        match self {
            Self::Scripted(config) => config.breaker,
            _ => self.http()?.breaker,
        }
    }
}

/// A section `[providers.<name>]` with `kind = "scripted"`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedConfig {
    /// The script's path, relative to the configuration file.
    pub script: PathBuf,
    /// The circuit breaker of its models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker: Option<BreakerConfig>,
}

/// The provider and the model for agents that name none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelDefaults {
    /// The provider of a model that names none. Default: the only provider.
    pub provider: Option<String>,
    /// The model of an agent that names none.
    pub model: Option<String>,
}

/// Providers by name.
#[derive(Clone, Default)]
pub struct Providers {
    by_name: BTreeMap<String, Arc<dyn Model>>,
    /// Semaphores of the providers that bound concurrent calls.
    places: BTreeMap<String, Arc<Semaphore>>,
    /// Circuit breakers of providers that have one of their own.
    breakers: BTreeMap<String, Breaker>,
    catch_all: Option<(String, Arc<dyn Model>)>,
    defaults: ModelDefaults,
}

impl Providers {
    /// Reads the providers of the configuration. Paths of scripts are relative to `base`.
    ///
    /// # Errors
    /// A sentence that names the provider and the key that is wrong.
    pub fn from_config(
        configs: &BTreeMap<String, ProviderConfig>,
        defaults: ModelDefaults,
        base: &Path,
    ) -> Result<Self, String> {
        let client = outbound::open_client()?;
        let mut providers = Self::default();
        for (name, config) in configs {
            let model = build(name, config, &client, base)
                .map_err(|problem| format!("[providers.{name}] {problem}"))?;
            providers.insert(name, model);
            if let Some(breaker) = config.breaker() {
                breaker.check().map_err(|problem| format!("[providers.{name}] {problem}"))?;
                providers.breakers.insert(name.clone(), breaker.over(Breaker::of_models()));
            }
            let places = match config.http().and_then(|config| config.concurrency) {
                None => continue,
                Some(0) => {
                    return Err(format!(
                        "[providers.{name}] concurrency: 0 would let nothing through; leave it out, or give at least 1"
                    ));
                }
                Some(most) => usize::try_from(most).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS),
            };
            providers.places.insert(name.clone(), Arc::new(Semaphore::new(places)));
        }
        if let Some(name) = &defaults.provider
            && !configs.contains_key(name)
        {
            return Err(format!("the default provider `{name}` is not configured; add [providers.{name}]"));
        }
        providers.defaults = defaults;
        Ok(providers)
    }

    /// Adds a provider, or replaces the one of this name.
    pub fn insert(&mut self, name: &str, model: Arc<dyn Model>) {
        self.by_name.insert(name.to_owned(), model);
    }

    /// Sets `model`, called `name`, as the model of every provider that is not configured.
    pub fn set_catch_all(&mut self, name: &str, model: Arc<dyn Model>) {
        self.catch_all = Some((name.to_owned(), model));
    }

    /// Sets the provider and the model for agents that name none.
    pub fn set_defaults(&mut self, defaults: ModelDefaults) {
        self.defaults = defaults;
    }

    /// Returns the model of an agent that names none.
    #[must_use]
    pub fn default_model(&self) -> Option<ModelRef> {
        self.default_model_at(None)
    }

    /// Returns the default model at a provider that the job names without a model; no other provider serves
    /// it.
    #[must_use]
    pub fn default_model_at(&self, provider: Option<&str>) -> Option<ModelRef> {
        let provider = provider.map(str::to_owned).or_else(|| self.defaults.provider.clone());
        Some(ModelRef { provider, model: self.defaults.model.clone()? })
    }

    /// Returns the provider that serves `model`, with its name. A model without a provider is served by the
    /// default one, else by the only one, else by the catch-all. `None` when no provider serves it.
    #[must_use]
    pub fn resolve(&self, model: &ModelRef) -> Option<(&str, Arc<dyn Model>)> {
        let named = model.provider.as_ref().or(self.defaults.provider.as_ref());
        let found = match named {
            Some(name) => self.by_name.get_key_value(name),
            None if self.by_name.len() == 1 => self.by_name.first_key_value(),
            None => None,
        };
        found
            .or(self.catch_all.as_ref().map(|(name, model)| (name, model)))
            .map(|(name, model)| (name.as_str(), model.clone()))
    }

    /// Waits for a free place among the calls of this provider; `None` when it does not bound them. Dropping
    /// the permit frees the place.
    pub async fn place(&self, name: &str) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(self.places.get(name)?).acquire_owned().await.ok()
    }

    /// Returns the circuit breaker of the models of this provider.
    #[must_use]
    pub fn breaker(&self, name: &str) -> Breaker {
        self.breakers.get(name).copied().unwrap_or_else(Breaker::of_models)
    }

    /// Returns true if a provider of this name exists.
    #[must_use]
    pub fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name) || self.catch_all.as_ref().is_some_and(|(known, _)| known == name)
    }

    /// Returns the names of the configured providers, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers")
            .field("names", &self.by_name.keys().collect::<Vec<_>>())
            .field("catch_all", &self.catch_all.as_ref().map(|(name, _)| name))
            .field("defaults", &self.defaults)
            .finish()
    }
}

fn build(
    name: &str,
    config: &ProviderConfig,
    client: &Client,
    base: &Path,
) -> Result<Arc<dyn Model>, String> {
    let (api, config): (Box<dyn Api>, _) = match config {
        ProviderConfig::OpenAi(config) => {
            let api = ChatCompletions {
                response_format: config.response_format.unwrap_or_default(),
                max_tokens_field: config.max_tokens_field.clone().unwrap_or_default(),
            };
            (Box::new(api), config)
        }
        ProviderConfig::Responses(config) => (Box::new(Responses), config),
        ProviderConfig::Anthropic(config) => (Box::new(Messages), config),
        ProviderConfig::Scripted(config) => {
            let path = base.join(&config.script);
            let text = std::fs::read_to_string(&path)
                .map_err(|error| format!("script: {} cannot be read: {error}", path.display()))?;
            let model = ScriptedModel::from_yaml(&text)
                .map_err(|problem| format!("script: {}: {problem}", path.display()))?;
            return Ok(Arc::new(model));
        }
    };
    Ok(Arc::new(HttpModel::new(name, api, config.clone(), client.clone())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::scripted::NoopModel;
    use futures::FutureExt;
    use serde_json::json;

    fn from_json(json: &str, provider: Option<&str>, base: &Path) -> Result<Providers, String> {
        let configs = serde_json::from_str(json).map_err(|error| error.to_string())?;
        Providers::from_config(
            &configs,
            ModelDefaults { provider: provider.map(Into::into), model: None },
            base,
        )
    }

    fn served(providers: &Providers, provider: Option<&str>) -> Option<String> {
        let model = ModelRef { provider: provider.map(Into::into), model: "m".into() };
        providers.resolve(&model).map(|(name, _)| name.to_owned())
    }

    #[test]
    fn a_model_is_served_by_the_named_the_default_or_the_only_provider() {
        let two =
            r#"{"a": {"kind": "openai"}, "b": {"kind": "openai", "base_url": "http://127.0.0.1:1/v1"}}"#;
        let here = Path::new(".");
        let providers = from_json(two, Some("b"), here).unwrap();
        assert_eq!(served(&providers, Some("a")).as_deref(), Some("a"));
        assert_eq!(served(&providers, None).as_deref(), Some("b"));
        assert_eq!(served(&providers, Some("c")), None);
        assert_eq!(served(&from_json(two, None, here).unwrap(), None), None);
        assert_eq!(
            served(&from_json(r#"{"a": {"kind": "openai"}}"#, None, here).unwrap(), None).as_deref(),
            Some("a")
        );
    }

    #[test]
    fn only_the_default_provider_answers_for_the_default_model() {
        let mut providers = Providers::default();
        assert_eq!(providers.default_model_at(Some("a")), None);
        providers.set_defaults(ModelDefaults { provider: Some("b".into()), model: Some("m".into()) });
        let at =
            |provider: Option<&str>| providers.default_model_at(provider).and_then(|model| model.provider);
        assert_eq!((at(Some("a")).as_deref(), at(None).as_deref()), (Some("a"), Some("b")));
    }

    #[test]
    fn the_catch_all_serves_every_name_that_is_not_configured() {
        let mut providers = Providers::default();
        assert_eq!(served(&providers, Some("openai")), None);
        providers.set_catch_all("scripted", Arc::new(NoopModel::default()));
        assert_eq!(served(&providers, Some("openai")).as_deref(), Some("scripted"));
        assert_eq!(served(&providers, None).as_deref(), Some("scripted"));
        providers.insert("openai", Arc::new(NoopModel::default()));
        assert_eq!(served(&providers, Some("openai")).as_deref(), Some("openai"));
        assert_eq!(served(&providers, Some("anthropic")).as_deref(), Some("scripted"));
    }

    #[test]
    fn problems_name_the_provider_and_the_key() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("bad.yaml"), "rules: [{answer: {}}]").unwrap();
        for (json, words) in [
            (r#"{"p": {"kind": "openai", "base_url": "nowhere"}}"#, ["[providers.p]", "base_url"]),
            (
                r#"{"p": {"kind": "openai", "base_url": "https://u:p@a.example"}}"#,
                ["[providers.p]", "base_url"],
            ),
            (
                r#"{"p": {"kind": "openai", "api_key": "env:TURNSTONE_SURELY_UNSET"}}"#,
                ["[providers.p]", "api_key"],
            ),
            (r#"{"p": {"kind": "openai", "headers": {"Cookie": "x"}}}"#, ["[providers.p]", "headers.Cookie"]),
            (r#"{"p": {"kind": "scripted", "script": "absent.yaml"}}"#, ["[providers.p]", "absent.yaml"]),
            (r#"{"p": {"kind": "scripted", "script": "bad.yaml"}}"#, ["[providers.p]", "rule 1"]),
            (r#"{"p": {"kind": "openai", "api_key": "sk-live-1"}}"#, ["by reference", "env:NAME"]),
            (r#"{"p": {"kind": "openai", "base": "x"}}"#, ["base", "base_url"]),
            (r#"{"p": {"kind": "scripted"}}"#, ["script", ""]),
            (r#"{"p": {"kind": "openai", "concurrency": 0}}"#, ["[providers.p]", "concurrency"]),
            (r#"{"p": {"kind": "openai", "timeout_ms": 0}}"#, ["[providers.p]", "timeout_ms"]),
            (
                r#"{"p": {"kind": "anthropic", "response_format": "json_object"}}"#,
                ["`response_format`", r#"only to providers with kind = "openai""#],
            ),
            (
                r#"{"p": {"kind": "openai-responses", "max_tokens_field": "max_tokens"}}"#,
                ["`max_tokens_field`", r#"only to providers with kind = "openai""#],
            ),
            (
                r#"{"p": {"kind": "openai-responses", "api_key": "env:TURNSTONE_SURELY_UNSET"}}"#,
                ["[providers.p]", "api_key"],
            ),
            (
                r#"{"p": {"kind": "openai", "store": true}}"#,
                ["`store`", r#"only to providers with kind = "openai-responses""#],
            ),
            (r#"{"p": {"kind": "anthropic", "store": true}}"#, ["`store`", "remove it"]),
            (r#"{"p": {"kind": "oracle"}}"#, ["oracle", "openai"]),
        ] {
            let problem = from_json(json, None, dir.path()).unwrap_err();
            assert!(words.iter().all(|word| problem.contains(word)), "{json}: {problem}");
        }
        let problem = from_json("{}", Some("openai"), dir.path()).unwrap_err();
        assert!(problem.contains("[providers.openai]"), "{problem}");
    }

    #[tokio::test]
    async fn a_provider_that_bounds_its_calls_gives_so_many_places() {
        let json = r#"{"a": {"kind": "openai", "concurrency": 2}, "b": {"kind": "openai"}}"#;
        let providers = from_json(json, None, Path::new(".")).unwrap();
        let (first, _second) = (providers.place("a").await, providers.place("a").await);
        assert!(first.is_some());
        assert!(providers.place("a").now_or_never().is_none(), "a third call waits");
        drop(first);
        assert!(providers.place("a").now_or_never().flatten().is_some());
        assert!(providers.place("b").await.is_none());
    }

    #[test]
    fn a_section_shows_the_defaults_of_its_kind() {
        let of = |kind: &str| {
            let config: ProviderConfig = serde_json::from_value(json!({"kind": kind})).unwrap();
            serde_json::to_value(config).unwrap()
        };
        let openai = "https://api.openai.com/v1";
        assert_eq!(
            of("openai"),
            json!({"kind": "openai", "base_url": openai, "structured_output": "native",
                   "response_format": "json_schema", "max_tokens_field": "max_completion_tokens"})
        );
        let other = json!({"kind": "openai", "base_url": "http://127.0.0.1:11434/v1"});
        let config: ProviderConfig = serde_json::from_value(other).unwrap();
        assert_eq!(serde_json::to_value(config).unwrap()["max_tokens_field"], "max_tokens");
        assert_eq!(
            of("openai-responses"),
            json!({"kind": "openai-responses", "base_url": openai, "structured_output": "native"})
        );
        assert_eq!(
            of("anthropic"),
            json!({"kind": "anthropic", "base_url": "https://api.anthropic.com/v1", "structured_output": "native"})
        );
    }
}
