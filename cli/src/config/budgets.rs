//! `[budgets."<name>"]` and the prices of models and tools.

use super::sections::Config;
use crate::failure::Failure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use turnstone_domain::budget::{Amount, BudgetName, BudgetRule, OnExceed};
use turnstone_worker::model::Prices;

/// The section name for the budgets of all engagements.
const ENGAGEMENT: &str = "engagement";

/// `[budgets."<name>"]`: limits on the spending of a tenant, an agent, on a model, or of the fleet.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BudgetsConfig(pub BTreeMap<String, BudgetConfig>);

/// A section `[budgets."<name>"]`. Names are `fleet`, `tenant/NAME`, `agent/NAME`, `model/PROVIDER/MODEL`, and parts
/// together in this order. `engagement` sets defaults for the budget of every engagement; there, only `on_exceed` and
/// `raise_wait_ms` may be set.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetConfig {
    /// Tokens altogether.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Tokens per day of UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Money altogether.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<Amount>,
    /// Money per day of UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<Amount>,
    /// ISO 4217; `USD` by default, and the currency of the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The treatment of a job that needs more than is left: `retry`, `park` or `fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exceed: Option<OnExceed>,
    /// The percentage of a limit at which a warning is given; 80 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warn_at: Option<u8>,
    /// How long a parked job waits for its budget, in milliseconds; 0 is without end. Set in the section
    /// `engagement` only; it applies to all budgets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raise_wait_ms: Option<u64>,
}

/// How long a parked job waits for its budget by default, in milliseconds: a week.
const RAISE_WAIT_MS: u64 = 7 * 86_400_000;

impl BudgetConfig {
    fn rule(&self, name: BudgetName) -> Result<BudgetRule, String> {
        let number = |field: &str, value: Option<u64>| {
            value.map(|value| i64::try_from(value).map_err(|_| format!("{field} is too large"))).transpose()
        };
        if self.raise_wait_ms.is_some() {
            return Err("raise_wait_ms is for all budgets and is set in [budgets.engagement]".to_owned());
        }
        let rule = BudgetRule {
            tokens: number("tokens", self.tokens)?,
            tokens_per_day: number("tokens_per_day", self.tokens_per_day)?,
            cost: self.cost.map(|amount| amount.0),
            cost_per_day: self.cost_per_day.map(|amount| amount.0),
            currency: self.currency.clone().unwrap_or_else(|| "USD".to_owned()),
            on_exceed: self.on_exceed,
            warn_at: self.warn_at.map(i64::from),
            ..BudgetRule::of(name)
        };
        rule.check().map(|()| rule)
    }
}

impl BudgetsConfig {
    /// Returns the shared budgets.
    ///
    /// # Errors
    /// The first one that cannot work, with its name.
    pub fn rules(&self) -> Result<Vec<BudgetRule>, String> {
        let shared = self.0.iter().filter(|(name, _)| *name != ENGAGEMENT);
        shared
            .map(|(name, config)| {
                config.rule(name.parse()?).map_err(|why| format!("[budgets.\"{name}\"] {why}"))
            })
            .collect()
    }

    /// Returns the treatment of a job whose engagement has too little left, unless its own budget sets one.
    #[must_use]
    pub fn of_engagements(&self) -> Option<OnExceed> {
        self.0.get(ENGAGEMENT)?.on_exceed
    }

    /// Returns how long a parked job waits for its budget to be raised; `None` is without end.
    #[must_use]
    pub fn raise_wait(&self) -> Option<Duration> {
        let said = self.0.get(ENGAGEMENT).and_then(|config| config.raise_wait_ms);
        Some(said.unwrap_or(RAISE_WAIT_MS)).filter(|ms| *ms > 0).map(Duration::from_millis)
    }

    /// Checks the rules that the types cannot express.
    ///
    /// # Errors
    /// The rest of a sentence that begins with the key.
    pub fn check(&self) -> Result<(), String> {
        let own = self.0.get(ENGAGEMENT);
        let own = own.map(|config| BudgetConfig { on_exceed: None, raise_wait_ms: None, ..config.clone() });
        if own.is_some_and(|own| own != BudgetConfig::default()) {
            return Err("of `engagement` may set on_exceed and raise_wait_ms and nothing else: jobs and agents say what an engagement may \
                        spend"
                .to_owned());
        }
        self.rules().map(drop).map_err(|problem| format!("cannot be used: {problem}"))
    }
}

impl Config {
    /// Returns the prices of models and tools.
    ///
    /// # Errors
    /// The problem of the configuration, with its section and key.
    pub fn prices(&self) -> Result<Prices, Failure> {
        let tools = self.tools.iter().filter_map(|(name, tool)| Some((name.clone(), tool.cost_per_call?)));
        Prices::from_config(&self.prices, tools.collect()).map_err(|problem| {
            Failure::usage(problem).hint("`turnstone config show` says where each value comes from")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> BudgetsConfig {
        toml::from_str(toml).unwrap()
    }

    #[test]
    fn budgets_are_read_with_their_limits() {
        let budgets = read(
            "['tenant/acme']\ntokens_per_day = 1000\ncost_per_day = 2.5\non_exceed = 'park'\n[engagement]\non_exceed = 'fail'",
        );
        assert_eq!(budgets.check(), Ok(()));
        let rules = budgets.rules().unwrap();
        assert_eq!(rules.len(), 1);
        assert_eq!((rules[0].tokens_per_day, rules[0].cost_per_day), (Some(1000), Some(2_500_000)));
        assert_eq!(budgets.of_engagements(), Some(OnExceed::Fail));
    }

    #[test]
    fn problems_name_the_budget() {
        for (toml, words) in [
            ("[acme]\ntokens = 1", "name of a budget"),
            ("['tenant/acme']\non_exceed = 'park'", "limits nothing"),
            ("['tenant/acme']\ntokens = 1\nraise_wait_ms = 5", "is set in [budgets.engagement]"),
            ("['tenant/acme']\ntokens = 1\nwarn_at = 101", "percentage"),
            ("[engagement]\ntokens = 1", "on_exceed and raise_wait_ms and nothing else"),
        ] {
            assert!(read(toml).check().unwrap_err().contains(words), "{toml}");
        }
    }
}
