//! The budget that an engagement waits for: what its next call may need, and how much is missing.

use crate::api::App;
use crate::reply::Failure;
use crate::request::Tenant;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use turnstone_domain::budget::{Amount, Measure, Purse, delegate_named};
use turnstone_domain::event::Parked;
use turnstone_domain::{EngagementId, Job, JobId, JobState};
use utoipa::ToSchema;

/// The name of the budget of an engagement and its delegates.
const OWN: &str = "engagement";
/// The name of a budget whose own name the caller may not see.
const SHARED: &str = "shared";
/// More levels than delegations have.
const DEEPEST: usize = 100;

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
    /// The engagement whose own budget it is, to be raised there; `null` for a shared one.
    pub engagement_id: Option<String>,
}

impl AwaitedBudget {
    /// Returns true if more is needed than is left; `None` if that is not known.
    #[must_use]
    pub fn is_short(&self) -> Option<bool> {
        match self.short.as_ref()? {
            Value::String(money) => money.parse::<Amount>().ok().map(|Amount(short)| short > 0),
            tokens => tokens.as_i64().map(|short| short > 0),
        }
    }

    /// Returns the wait in a sentence.
    pub(super) fn prompt(&self) -> String {
        let whose = match self.name.as_str() {
            _ if self.engagement_id.is_some() => "The engagement's budget".to_owned(),
            SHARED => "A shared budget".to_owned(),
            name => format!("Budget {name}"),
        };
        let text = |amount: &Option<Value>| match amount {
            Some(Value::String(money)) => money.clone(),
            Some(tokens) => format!("{tokens} tokens"),
            None => "more".to_owned(),
        };
        let needed = text(&self.needed);
        match (&self.left, self.is_short()) {
            (Some(_), Some(true)) => format!(
                "{whose} has {} left and the next call may need {needed}; raise it by {}",
                text(&self.left),
                text(&self.short)
            ),
            (Some(_), _) => format!(
                "{whose} has {} left and the next call may need {needed}; it is about to be made",
                text(&self.left)
            ),
            (None, _) => format!("{whose} has too little left; the next call may need {needed}"),
        }
    }
}

/// A budget that a job is parked for.
pub(crate) struct Awaited {
    name: String,
    measure: Measure,
    needed: Option<i64>,
    resets_at: Option<String>,
    /// The engagement whose own budget it is.
    pub(crate) engagement: Option<EngagementId>,
}

impl Awaited {
    /// Returns the budget that a job waits for, if it waits for one.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn of(app: &App, engagement: &EngagementId, job: &Job) -> Result<Option<Self>, Failure> {
        let waits_for = job.waits_for.as_ref().filter(|_| job.state == JobState::Pending);
        let Some(Ok(parked)) = waits_for.map(Parked::deserialize) else { return Ok(None) };
        let Parked::Budget { budget: name, needed, unit, until: resets_at, .. } = parked else {
            return Ok(None);
        };
        let engagement = match delegate_named(&name) {
            Some(delegate) => Some(EngagementId::from(delegate)),
            None if name == OWN => Some(root(app, engagement, &job.id).await?),
            None => None,
        };
        Ok(Some(Self { name, measure: unit.unwrap_or(Measure::Tokens), needed, resets_at, engagement }))
    }

    /// Returns the budget with what is left of it now. A caller without `tenant` sees the budgets of engagements alone.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn now(self, app: &App, tenant: Option<&Tenant>) -> Result<AwaitedBudget, Failure> {
        let purse = match (&self.engagement, tenant) {
            (Some(engagement), _) => Some(app.api.store.views.budget(engagement).await?.purse(self.measure)),
            (None, Some(tenant)) => {
                let (budgets, now) = (&app.api.store.budgets, app.api.clock.now());
                let found = budgets.list(Some(&self.name), tenant.name(), now).await?.pop();
                found.and_then(|shared| {
                    let row = shared.rows.iter().find(|row| row.day.is_some() == self.resets_at.is_some())?;
                    Some(row.budget.purse(self.measure))
                })
            }
            (None, None) => None,
        };
        let is_hidden = self.engagement.is_none() && tenant.is_none();
        let name = if is_hidden { SHARED.to_owned() } else { self.name.clone() };
        Ok(AwaitedBudget { name, ..self.with(purse) })
    }

    /// Returns the budget with what is left by this purse.
    pub(crate) fn with(self, purse: Option<Purse>) -> AwaitedBudget {
        let Self { name, measure: unit, needed, resets_at, engagement } = self;
        let amount = |amount: i64| match unit {
            Measure::Tokens => Value::from(amount),
            Measure::Money => Amount(amount).to_string().into(),
        };
        let left = purse.and_then(|purse| purse.left());
        // A budget without a limit lets every call be made.
        let short = match purse {
            Some(Purse { limit: None, .. }) => Some(0),
            _ => needed.zip(left).map(|(needed, left)| needed.saturating_sub(left).max(0)),
        };
        let (needed, left, short) = (needed.map(amount), left.map(amount), short.map(amount));
        let engagement_id = engagement.map(|id| id.0);
        AwaitedBudget { name, unit, needed, left, short, resets_at, engagement_id }
    }

    /// Returns the unit of the amounts.
    pub(crate) fn measure(&self) -> Measure {
        self.measure
    }
}

/// Returns the engagement whose budget the whole tree spends.
async fn root(app: &App, engagement: &EngagementId, job: &JobId) -> Result<EngagementId, Failure> {
    let (mut root, mut job) = (engagement.clone(), job.clone());
    for _ in 0..DEEPEST {
        match app.api.store.delegations.links(&job, 1).await?.parent {
            Some((parent, of)) => (root, job) = (of, parent),
            None => break,
        }
    }
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_missing_amount_is_that_which_the_next_call_needs_beyond_the_rest() {
        let awaited = |measure: Measure, needed: Option<i64>, engagement: Option<&str>| Awaited {
            name: if engagement.is_some() { OWN } else { "fleet" }.to_owned(),
            measure,
            needed,
            resets_at: None,
            engagement: engagement.map(EngagementId::from),
        };
        let own = |needed, purse| awaited(Measure::Tokens, needed, Some("e")).with(Some(purse));
        let purse = Purse { limit: Some(4_000), settled: 3_920, reserved: 0 };
        let short = own(Some(520), purse);
        assert_eq!(
            (&short.left, &short.short, short.is_short()),
            (&Some(json!(80)), &Some(json!(440)), Some(true))
        );
        assert_eq!(
            short.prompt(),
            "The engagement's budget has 80 tokens left and the next call may need 520 tokens; raise it by 440 tokens"
        );
        let over = own(Some(520), Purse { settled: 4_920, ..purse });
        assert_eq!((&over.left, &over.short), (&Some(json!(0)), &Some(json!(520))));
        assert_eq!(own(Some(80), purse).is_short(), Some(false));
        assert!(own(Some(80), purse).prompt().ends_with("may need 80 tokens; it is about to be made"));
        assert_eq!(
            own(Some(520), Purse { limit: None, ..purse }).is_short(),
            Some(false),
            "nothing limits it"
        );
        assert_eq!(own(None, purse).is_short(), None, "an older wait does not say what it needs");
        let money = |purse| awaited(Measure::Money, Some(2_500_000), None).with(purse);
        let fleet = money(Some(Purse { limit: Some(6_000_000), settled: 4_000_000, reserved: 0 }));
        assert_eq!(fleet.is_short(), Some(true));
        assert_eq!(
            fleet.prompt(),
            "Budget fleet has 2.00 left and the next call may need 2.50; raise it by 0.50"
        );
        let enough = money(Some(Purse { limit: Some(6_500_000), settled: 4_000_000, reserved: 0 }));
        assert_eq!(enough.is_short(), Some(false), "{:?}", enough.short);
        assert_eq!(money(None).prompt(), "Budget fleet has too little left; the next call may need 2.50");
    }
}
