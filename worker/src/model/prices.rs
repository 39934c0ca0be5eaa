//! The prices of models and tools in `turnstone.toml`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use turnstone_domain::budget::{Amount, Price};

/// A section `[prices."<provider>/<model>"]`: the price of a million tokens, as a decimal in units of the
/// currency.
///
/// ```toml
/// [prices."openai/gpt-4o-mini"]
/// input_per_million = 0.15
/// cached_input_per_million = 0.075
/// output_per_million = 0.60
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceConfig {
    /// Prompt tokens.
    pub input_per_million: Amount,
    /// Prompt tokens from the provider's cache. Default: the price of other prompt tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input_per_million: Option<Amount>,
    /// Completion tokens.
    pub output_per_million: Amount,
    /// The currency (ISO 4217), the same for all prices. Default: `USD`.
    #[serde(default = "usd")]
    pub currency: String,
}

fn usd() -> String {
    "USD".to_owned()
}

/// The prices of models by `provider/model`, and of tool calls by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prices {
    models: BTreeMap<String, Price>,
    tools: BTreeMap<String, i64>,
    currency: String,
}

impl Default for Prices {
    fn default() -> Self {
        Self { models: BTreeMap::new(), tools: BTreeMap::new(), currency: usd() }
    }
}

impl Prices {
    /// Reads the prices of the configuration. `tools` holds the prices of tool calls by name, in the same
    /// currency.
    ///
    /// # Errors
    /// A sentence that names the section that is wrong.
    pub fn from_config(
        configs: &BTreeMap<String, PriceConfig>,
        tools: BTreeMap<String, Amount>,
    ) -> Result<Self, String> {
        let mut prices = Self::default();
        for (at, (name, config)) in configs.iter().enumerate() {
            let named = name
                .split_once('/')
                .is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty());
            if !named {
                return Err(format!(
                    "[prices.\"{name}\"] must be named PROVIDER/MODEL, such as openai/gpt-4o-mini"
                ));
            }
            if config.currency.len() != 3 || !config.currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
                return Err(format!(
                    "[prices.\"{name}\"] currency must be three capital letters such as USD"
                ));
            }
            if at > 0 && config.currency != prices.currency {
                return Err(format!(
                    "[prices.\"{name}\"] currency is {}, others are in {}: write all prices in one currency",
                    config.currency, prices.currency
                ));
            }
            prices.currency.clone_from(&config.currency);
            let price = Price {
                input: config.input_per_million.0,
                cached_input: config.cached_input_per_million.unwrap_or(config.input_per_million).0,
                output: config.output_per_million.0,
                currency: config.currency.clone(),
            };
            prices.models.insert(name.clone(), price);
        }
        prices.tools = tools.into_iter().map(|(name, amount)| (name, amount.0)).collect();
        Ok(prices)
    }

    /// Returns the price of a model, by `provider/model`.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<&Price> {
        self.models.get(name)
    }

    /// Returns the price of one call of a tool, in millionths of the currency; 0 when none is configured.
    #[must_use]
    pub fn tool(&self, name: &str) -> i64 {
        self.tools.get(name).copied().unwrap_or_default()
    }

    /// Returns the currency of all prices.
    #[must_use]
    pub fn currency(&self) -> &str {
        &self.currency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<Prices, String> {
        Prices::from_config(&serde_json::from_str(json).map_err(|e| e.to_string())?, BTreeMap::new())
    }

    #[test]
    fn prices_are_read_exactly_and_the_cache_costs_the_same_unless_said() {
        let prices =
            read(r#"{"openai/mini": {"input_per_million": 0.15, "output_per_million": "0.6"}}"#).unwrap();
        let price = prices.model("openai/mini").unwrap();
        assert_eq!((price.input, price.cached_input, price.output), (150_000, 150_000, 600_000));
        assert_eq!(prices.model("openai/other"), None);
        assert_eq!((prices.currency(), prices.tool("search")), ("USD", 0));
    }

    #[test]
    fn problems_name_the_section() {
        let price = |currency| {
            format!(r#"{{"input_per_million": 1, "output_per_million": 1, "currency": "{currency}"}}"#)
        };
        for (json, words) in [
            (format!(r#"{{"mini": {}}}"#, price("USD")), "PROVIDER/MODEL"),
            (format!(r#"{{"a/b": {}}}"#, price("usd")), "three capital letters"),
            (format!(r#"{{"a/b": {}, "a/c": {}}}"#, price("USD"), price("EUR")), "one currency"),
            (r#"{"a/b": {"input_per_million": -1, "output_per_million": 1}}"#.to_owned(), "amount of money"),
            (r#"{"a/b": {"input_per_million": 1}}"#.to_owned(), "output_per_million"),
        ] {
            let problem = read(&json).unwrap_err();
            assert!(problem.contains(words), "{json}: {problem}");
        }
    }
}
