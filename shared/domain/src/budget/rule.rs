//! Budgets that many engagements share: their names, limits and behaviour at a limit.

use crate::EngagementId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;

/// The treatment of a job whose next call does not fit into a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnExceed {
    /// The attempt fails, and the retry policy decides. With a limit per day, the next attempt is not before the next
    /// day.
    #[default]
    Retry,
    /// It waits until the budget is raised, or until the next day; that is no failure.
    Park,
    /// It is discarded.
    Fail,
}

impl OnExceed {
    /// Returns the word as on the wire and in the database.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Park => "park",
            Self::Fail => "fail",
        }
    }

    /// Reads [`OnExceed::as_str`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Retry, Self::Park, Self::Fail].into_iter().find(|word| word.as_str() == text)
    }
}

/// The name of a shared budget, which shows its scope: `fleet`, `tenant/acme`, `agent/researcher`,
/// `model/openai/gpt-4o-mini`. Parts combine in this order, such as `tenant/acme/model/openai/gpt-4o-mini`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct BudgetName {
    /// Only jobs of this tenant.
    pub tenant: Option<String>,
    /// Only engagements with this agent.
    pub agent: Option<String>,
    /// Only calls to this model, `provider/model`.
    pub model: Option<String>,
}

impl BudgetName {
    /// Returns the budget of an agent.
    #[must_use]
    pub fn of_agent(agent: &str) -> Self {
        Self { agent: Some(agent.to_owned()), ..Self::default() }
    }

    /// Returns the narrowest part of the name: `fleet`, `tenant`, `agent` or `model`.
    #[must_use]
    pub fn scope(&self) -> &'static str {
        match (&self.tenant, &self.agent, &self.model) {
            (_, _, Some(_)) => "model",
            (_, Some(_), None) => "agent",
            (Some(_), None, None) => "tenant",
            (None, None, None) => "fleet",
        }
    }
}

impl FromStr for BudgetName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "`{text}` is not the name of a budget: {why}; write fleet, tenant/NAME, agent/NAME, model/PROVIDER/MODEL, \
                 or parts together such as tenant/NAME/model/PROVIDER/MODEL"
            )
        };
        if text.len() > 512 || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(wrong("it is too long, or has spaces or control characters"));
        }
        if text == "fleet" {
            return Ok(Self::default());
        }
        let mut rest = text;
        let mut name = Self::default();
        for (word, part) in [("tenant/", &mut name.tenant), ("agent/", &mut name.agent)] {
            if let Some(after) = rest.strip_prefix(word) {
                let (own, further) = after.split_once('/').unwrap_or((after, ""));
                if own.is_empty() {
                    return Err(wrong("a part is empty"));
                }
                *part = Some(own.to_owned());
                rest = further;
            }
        }
        if let Some(model) = rest.strip_prefix("model/") {
            let named = model
                .split_once('/')
                .is_some_and(|(provider, model)| !provider.is_empty() && !model.is_empty());
            if !named {
                return Err(wrong("a model is named with its provider"));
            }
            name.model = Some(model.to_owned());
            rest = "";
        }
        if name == Self::default() || !rest.is_empty() || text.ends_with('/') {
            return Err(wrong("its parts are not known, or not in this order"));
        }
        Ok(name)
    }
}

impl fmt::Display for BudgetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("tenant", &self.tenant), ("agent", &self.agent), ("model", &self.model)];
        let parts: Vec<String> =
            parts.iter().filter_map(|(word, part)| Some(format!("{word}/{}", part.as_ref()?))).collect();
        f.pad(if parts.is_empty() { "fleet".to_owned() } else { parts.join("/") }.as_str())
    }
}

/// The prefix in the name of a delegate's own budget; the engagement's id follows.
const OF_DELEGATE: &str = "engagement/";

/// Returns the name of an engagement's own budget within its tree. It is no [`BudgetName`]: a rule cannot have it.
#[must_use]
pub fn name_of_delegate(engagement: &EngagementId) -> String {
    format!("{OF_DELEGATE}{engagement}")
}

/// Returns the engagement whose own budget has this name.
#[must_use]
pub fn delegate_named(name: &str) -> Option<&str> {
    name.strip_prefix(OF_DELEGATE)
}

/// The limits of a shared budget: tokens, and money in millionths of `currency`. A day is a day of UTC.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BudgetRule {
    /// The scope.
    pub name: BudgetName,
    /// Tokens altogether.
    pub tokens: Option<i64>,
    /// Tokens per day.
    pub tokens_per_day: Option<i64>,
    /// Money altogether.
    pub cost: Option<i64>,
    /// Money per day.
    pub cost_per_day: Option<i64>,
    /// ISO 4217.
    pub currency: String,
    /// The treatment of a job that needs more; `None` leaves it to the server.
    pub on_exceed: Option<OnExceed>,
    /// The percentage of a limit at which a warning is given; `None` is [`super::WARN_AT`].
    pub warn_at: Option<i64>,
}

impl BudgetRule {
    /// Returns a rule without limits.
    #[must_use]
    pub fn of(name: BudgetName) -> Self {
        Self {
            name,
            tokens: None,
            tokens_per_day: None,
            cost: None,
            cost_per_day: None,
            currency: "USD".to_owned(),
            on_exceed: None,
            warn_at: None,
        }
    }

    /// Returns true if it sets a limit.
    #[must_use]
    pub fn limits_anything(&self) -> bool {
        [self.tokens, self.tokens_per_day, self.cost, self.cost_per_day].iter().any(Option::is_some)
    }

    /// Checks the rules that the types cannot express.
    ///
    /// # Errors
    /// A sentence that begins with the field.
    pub fn check(&self) -> Result<(), String> {
        let limits = [
            ("tokens", self.tokens),
            ("tokens_per_day", self.tokens_per_day),
            ("cost", self.cost),
            ("cost_per_day", self.cost_per_day),
        ];
        if let Some((field, _)) = limits.iter().find(|(_, limit)| limit.is_some_and(|limit| limit < 0)) {
            return Err(format!("{field} must not be negative"));
        }
        if !self.limits_anything() {
            return Err("tokens, tokens_per_day, cost or cost_per_day must be given: a budget without a limit limits \
                        nothing"
                .to_owned());
        }
        if self.warn_at.is_some_and(|percent| !(1..=100).contains(&percent)) {
            return Err("warn_at must be a percentage from 1 to 100".to_owned());
        }
        if self.currency.len() != 3 || !self.currency.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err("currency must be three capital letters such as USD".to_owned());
        }
        Ok(())
    }
}

/// A shared budget that a job may have to pay into.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppliedBudget {
    /// Its name.
    pub name: String,
    /// The one model it is about; `None` is every model.
    pub model: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_a_budget_is_about() {
        for (text, scope) in [
            ("fleet", "fleet"),
            ("tenant/acme", "tenant"),
            ("agent/researcher", "agent"),
            ("model/openai/gpt-4o", "model"),
            ("model/openrouter/meta/llama", "model"),
            ("tenant/acme/agent/researcher", "agent"),
            ("tenant/acme/model/openai/gpt-4o", "model"),
            ("tenant/acme/agent/a/model/p/m", "model"),
        ] {
            let name: BudgetName = text.parse().unwrap();
            assert_eq!((name.to_string().as_str(), name.scope()), (text, scope));
        }
        for bad in [
            "",
            "acme",
            "tenant",
            "tenant/",
            "tenant/a/",
            "model/gpt",
            "model//m",
            "agent/a/tenant/b",
            "tenant/a b",
            "fleet/x",
        ] {
            assert!(bad.parse::<BudgetName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_rule_limits_something() {
        let rule = BudgetRule { tokens: Some(0), ..BudgetRule::of(BudgetName::default()) };
        assert_eq!(rule.check(), Ok(()));
        for (field, broken) in [
            ("tokens", BudgetRule { tokens: None, ..rule.clone() }),
            ("cost", BudgetRule { cost: Some(-1), ..rule.clone() }),
            ("warn_at", BudgetRule { warn_at: Some(0), ..rule.clone() }),
            ("currency", BudgetRule { currency: "usd".into(), ..rule }),
        ] {
            assert!(broken.check().unwrap_err().starts_with(field), "{field}");
        }
    }
}
