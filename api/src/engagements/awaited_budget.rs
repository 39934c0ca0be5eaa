//! The budget that an engagement waits for: what its next call may need, and how much is missing.

use crate::api::App;
use crate::reply::Failure;
use crate::request::Tenant;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnstone_domain::budget::{Amount, Budget, Measure, Purse};
use turnstone_domain::event::Parked;
use turnstone_domain::{Job, JobState};
use utoipa::ToSchema;

/// The name of an engagement's own budget.
const OWN: &str = "engagement";

/// A budget that has not enough left for the next call. Amounts are numbers of tokens, or money as decimals.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct AwaitedBudget {
    /// Its name; `engagement` is that of the engagement and its delegates.
    pub name: String,
    /// The unit of the amounts.
    pub unit: Measure,
    /// The most that the next call may need.
    pub needed: Option<Value>,
    /// The rest; absent where the caller may not see the budget.
    pub left: Option<Value>,
    /// The missing amount. 0 when the job is about to go on.
    pub short: Option<Value>,
    /// When a daily budget begins anew.
    pub resets_at: Option<String>,
}

impl AwaitedBudget {
    fn of(parked: Parked, purse: Option<Purse>) -> Option<Self> {
        let Parked::Budget { budget: name, needed, unit, until: resets_at, .. } = parked else { return None };
        let unit = unit.unwrap_or(Measure::Tokens);
        let amount = |amount: i64| match unit {
            Measure::Tokens => Value::from(amount),
            Measure::Money => Amount(amount).to_string().into(),
        };
        let left = purse.and_then(|purse| purse.left());
        let short = needed.zip(left).map(|(needed, left)| needed.saturating_sub(left).max(0));
        let (needed, left, short) = (needed.map(amount), left.map(amount), short.map(amount));
        Some(Self { name, unit, needed, left, short, resets_at })
    }

    /// Returns the wait for the engagement's own budget; `None` for another one.
    pub(crate) fn of_own(parked: Parked, own: &Budget) -> Option<Self> {
        let Parked::Budget { budget, unit, .. } = &parked else { return None };
        let purse = (budget == OWN).then(|| own.purse(unit.unwrap_or(Measure::Tokens)))?;
        Self::of(parked, Some(purse))
    }

    /// Returns the wait in a sentence.
    pub(super) fn prompt(&self) -> String {
        let whose = match self.name.as_str() {
            OWN => "The engagement's budget".to_owned(),
            name => format!("Budget {name}"),
        };
        let text = |amount: &Option<Value>| match amount {
            Some(Value::String(money)) => money.clone(),
            Some(tokens) => format!("{tokens} tokens"),
            None => "more".to_owned(),
        };
        let left =
            self.left.as_ref().map(|_| format!(" has {} left and", text(&self.left))).unwrap_or_default();
        let raise =
            self.short.as_ref().map(|_| format!("; raise it by {}", text(&self.short))).unwrap_or_default();
        match left.is_empty() {
            true => format!("{whose} has too little left; the next call may need {}", text(&self.needed)),
            false => format!("{whose}{left} the next call may need {}{raise}", text(&self.needed)),
        }
    }
}

/// Returns what a job is parked for.
pub(crate) fn parked(job: &Job) -> Option<Parked> {
    let waits_for = job.waits_for.as_ref().filter(|_| job.state == JobState::Pending)?;
    Parked::deserialize(waits_for).ok()
}

/// Returns the budget that a job waits for, if it waits for one. `own` is that of its engagement.
pub(super) async fn of(
    app: &App,
    tenant: &Tenant,
    job: &Job,
    own: &Budget,
) -> Result<Option<AwaitedBudget>, Failure> {
    let Some(parked) = parked(job) else { return Ok(None) };
    let Parked::Budget { budget, unit, until, .. } = &parked else { return Ok(None) };
    let measure = unit.unwrap_or(Measure::Tokens);
    let purse = match budget.as_str() {
        OWN => Some(own.purse(measure)),
        name => {
            let now = app.api.clock.now();
            let found = app.api.store.budgets.list(Some(name), tenant.name(), now).await?.pop();
            found.and_then(|shared| {
                let row = shared.rows.iter().find(|row| row.day.is_some() == until.is_some())?;
                Some(row.budget.purse(measure))
            })
        }
    };
    Ok(AwaitedBudget::of(parked, purse))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn awaited(data: Value, purse: Option<Purse>) -> AwaitedBudget {
        AwaitedBudget::of(Parked::deserialize(data).unwrap(), purse).unwrap()
    }

    #[test]
    fn what_is_missing_is_what_the_next_call_needs_beyond_the_rest() {
        let purse = Purse { limit: Some(4_000), settled: 3_920, reserved: 0 };
        let own = awaited(json!({"kind": "budget", "budget": "engagement", "needed": 520}), Some(purse));
        assert_eq!((&own.left, &own.short), (&Some(json!(80)), &Some(json!(440))));
        assert_eq!(
            own.prompt(),
            "The engagement's budget has 80 tokens left and the next call may need 520 tokens; raise it by 440 tokens"
        );
        let over = Purse { settled: 4_920, ..purse };
        let own = awaited(json!({"kind": "budget", "budget": "engagement", "needed": 520}), Some(over));
        assert_eq!((&own.left, &own.short), (&Some(json!(0)), &Some(json!(520))));
        let money = json!({"kind": "budget", "budget": "fleet", "needed": 2_500_000, "unit": "money"});
        let fleet =
            awaited(money.clone(), Some(Purse { limit: Some(6_000_000), settled: 4_000_000, reserved: 0 }));
        assert_eq!(
            fleet.prompt(),
            "Budget fleet has 2.00 left and the next call may need 2.50; raise it by 0.50"
        );
        let hidden = awaited(money, None);
        assert_eq!(hidden.prompt(), "Budget fleet has too little left; the next call may need 2.50");
    }
}
