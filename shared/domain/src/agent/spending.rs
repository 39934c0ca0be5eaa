//! The spending limits of an agent beyond the tokens of one engagement.

use serde::{Deserialize, Serialize};

/// The spending limits of an agent beyond the tokens of one engagement.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Spending {
    /// The most money one engagement and its delegates may cost, in millionths of a currency; `None` is unlimited.
    pub cost_budget: Option<i64>,
    /// The most tokens all engagements with the agent may use per day of UTC (OSSA `constraints.cost.maxTokensPerDay`).
    pub tokens_per_day: Option<i64>,
    /// The most money that they may cost per day, in millionths of a currency (`constraints.cost.maxCostPerDay`).
    pub cost_per_day: Option<i64>,
    /// ISO 4217; `None` is `USD` (`constraints.cost.currency`).
    pub currency: Option<String>,
    /// The percentage of a daily limit at which a warning is given (`llm.cost_tracking.budget_alert_threshold`).
    pub warn_at: Option<i64>,
}

impl Spending {
    /// Returns true if no limit is set.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
