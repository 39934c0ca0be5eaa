//! Budgets that engagements share, what an engagement may spend, and what was spent.

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::budget::{Budget, BudgetRule, OnExceed};
use turnstone_domain::{EngagementId, JobId, Phase, Timestamp};

/// A row of a shared budget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BudgetRow {
    /// Days since the epoch, UTC; `None` counts altogether.
    pub day: Option<i64>,
    /// The amounts.
    pub budget: Budget,
    /// Jobs that wait for it.
    pub waiting: u64,
}

/// A shared budget with the rows that have been used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedBudget {
    /// What it limits.
    pub rule: BudgetRule,
    /// What was spent: newest day first.
    pub rows: Vec<BudgetRow>,
}

/// By how much a budget is raised, in tokens and millionths of its currency.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Raise {
    /// Tokens altogether.
    pub tokens: i64,
    /// Tokens per day.
    pub tokens_per_day: i64,
    /// Money altogether.
    pub cost: i64,
    /// Money per day.
    pub cost_per_day: i64,
}

/// What changes of an engagement's budget; what is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnBudget {
    /// The most tokens; `Some(None)` is unlimited.
    pub tokens: Option<Option<i64>>,
    /// The most money, in millionths of the currency; `Some(None)` is unlimited.
    pub cost: Option<Option<i64>>,
    /// Added to the limits, where there are any.
    pub raise: Raise,
    /// What becomes of a job that needs more.
    pub on_exceed: Option<OnExceed>,
}

/// Tokens and money.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Spending {
    /// How often.
    pub runs: i64,
    /// How long altogether, in milliseconds.
    pub duration_ms: i64,
    /// Prompt tokens, cached ones included.
    pub tokens_in: i64,
    /// Prompt tokens that the provider had in its cache.
    pub tokens_cached: i64,
    /// Completion tokens.
    pub tokens_out: i64,
    /// Millionths of the currency.
    pub cost: i64,
}

/// What an engagement has cost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EngagementCost {
    /// By job and phase.
    pub phases: Vec<(JobId, Phase, Spending)>,
    /// By job and tool.
    pub tools: Vec<(JobId, String, Spending)>,
}

/// What was spent on a model in a day.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DailyCost {
    /// Days since the epoch, UTC.
    pub day: i64,
    /// Whose jobs.
    pub tenant: Option<String>,
    /// `provider/model`.
    pub model: String,
    /// How much.
    pub spent: Spending,
}

/// Budgets that engagements share, what an engagement may spend, and what was spent.
#[async_trait]
pub trait Budgets: Send + Sync + 'static {
    /// Makes a shared budget, or changes what it limits; jobs that wait for it go on. With `given`, which is what the
    /// configuration says of it, nothing is changed unless that is something else than the last time. Returns whether
    /// anything was.
    async fn set(&self, rule: BudgetRule, given: Option<String>, now: Timestamp) -> Result<bool, StoreError>;

    /// Raises the limits that a shared budget has; jobs that wait for it go on. `None` when there is none of this name and
    /// tenant.
    async fn raise(
        &self,
        name: &str,
        tenant: Option<&str>,
        by: Raise,
        now: Timestamp,
    ) -> Result<Option<BudgetRule>, StoreError>;

    /// Forgets a shared budget, which no longer limits anything; returns whether there was one.
    async fn forget(&self, name: &str, tenant: Option<&str>, now: Timestamp) -> Result<bool, StoreError>;

    /// Changes what an engagement and its delegates may spend; jobs that wait for it go on. `None` when there is no such
    /// engagement of this tenant.
    async fn set_own(
        &self,
        engagement: &EngagementId,
        tenant: Option<&str>,
        change: OwnBudget,
        now: Timestamp,
    ) -> Result<Option<Budget>, StoreError>;

    /// Shared budgets by name, with their rows for the days from `since` on; all, or the one of this name.
    async fn list(
        &self,
        name: Option<&str>,
        tenant: Option<&str>,
        since: Timestamp,
    ) -> Result<Vec<SharedBudget>, StoreError>;

    /// What an engagement has cost.
    async fn cost_of(&self, engagement: &EngagementId) -> Result<EngagementCost, StoreError>;

    /// What was spent on models, by day, tenant and model, newest day first.
    async fn daily(&self, tenant: Option<&str>, since: Timestamp) -> Result<Vec<DailyCost>, StoreError>;
}
