//! Budgets that engagements share, what an engagement may spend, and what was spent.

use super::ops::budgets as ops;
use super::rows::{self, Fields, Inconsistency, get, wrong};
use super::session::{Arg, Row};
use super::views::{all, many, one};
use super::{Engine, journal};
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::collections::BTreeMap;
use std::sync::Arc;
use turnstone_domain::budget::{Budget, BudgetRule, OnExceed, day_of};
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
    /// The limit, and what it applies to.
    pub rule: BudgetRule,
    /// The spending, newest day first.
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

/// A change of an engagement's budget; a field that is `None` stays as it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OwnBudget {
    /// The most tokens; `Some(None)` is unlimited.
    pub tokens: Option<Option<i64>>,
    /// The most money, in millionths of the currency; `Some(None)` is unlimited.
    pub cost: Option<Option<i64>>,
    /// Added to the limits, where there are any.
    pub raise: Raise,
    /// The effect on a job that needs more.
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

/// The cost of an engagement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct EngagementCost {
    /// By job and phase.
    pub phases: Vec<(JobId, Phase, Spending)>,
    /// By job and tool.
    pub tools: Vec<(JobId, String, Spending)>,
}

/// The spending on one model in one day.
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

/// Reads the limit of a shared budget, and the source that set it last: the configuration or a manifest.
pub(super) fn rule(row: &impl Fields) -> Result<(BudgetRule, Option<String>), Inconsistency> {
    let rule = BudgetRule {
        name: get::<&str>(row, "name")?.parse().map_err(|e: String| wrong("name", e))?,
        tokens: get(row, "tokens")?,
        tokens_per_day: get(row, "tokens_per_day")?,
        cost: get(row, "cost")?,
        cost_per_day: get(row, "cost_per_day")?,
        currency: get(row, "currency")?,
        on_exceed: get::<Option<&str>>(row, "on_exceed")?.and_then(OnExceed::parse),
        warn_at: get(row, "warn_at")?,
    };
    Ok((rule, get(row, "given")?))
}

/// Rows whose checkpoints are added up at once.
const ROWS: u32 = 256;

/// Budgets that engagements share, what an engagement may spend, and what was spent.
#[derive(Clone)]
pub struct Budgets(pub(super) Arc<Engine>);

impl Budgets {
    /// Makes a shared budget, or changes what it limits; jobs that wait for it resume. With `given`, which is what the
    /// configuration says of it, nothing is changed unless that is something else than the last time. Returns whether
    /// anything was.
    #[boxed]
    pub async fn set(
        &self,
        rule: BudgetRule,
        given: Option<String>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.0
            .write((rule, given, now), |tx, (rule, given, now)| {
                Box::pin(ops::set(&mut tx.session, &mut tx.unit, rule, given.as_deref(), *now))
            })
            .await
    }

    /// Raises the limits that a shared budget has; jobs that wait for it resume. `None` when there is none of this name and
    /// tenant.
    #[boxed]
    pub async fn raise(
        &self,
        name: &str,
        tenant: Option<&str>,
        by: Raise,
        now: Timestamp,
    ) -> Result<Option<BudgetRule>, StoreError> {
        let requested = (name.to_owned(), tenant.map(str::to_owned), by, now);
        self.0
            .write(requested, |tx, (name, tenant, by, now)| {
                Box::pin(ops::raise(&mut tx.session, &mut tx.unit, name, tenant.as_deref(), *by, *now))
            })
            .await
    }

    /// Forgets a shared budget, which no longer limits anything; returns whether there was one.
    #[boxed]
    pub async fn forget(&self, name: &str, tenant: Option<&str>, now: Timestamp) -> Result<bool, StoreError> {
        self.0
            .write((name.to_owned(), tenant.map(str::to_owned), now), |tx, (name, tenant, now)| {
                Box::pin(ops::forget(&mut tx.session, &mut tx.unit, name, tenant.as_deref(), *now))
            })
            .await
    }

    /// Changes what an engagement and its delegates may spend; jobs that wait for it resume. `None` when there is no such
    /// engagement of this tenant.
    #[boxed]
    pub async fn set_own(
        &self,
        engagement: &EngagementId,
        tenant: Option<&str>,
        change: OwnBudget,
        now: Timestamp,
    ) -> Result<Option<Budget>, StoreError> {
        let requested = (engagement.clone(), tenant.map(str::to_owned), change, now);
        self.0
            .write(requested, |tx, (engagement, tenant, change, now)| {
                Box::pin(ops::set_own(
                    &mut tx.session,
                    &mut tx.unit,
                    engagement,
                    tenant.as_deref(),
                    change,
                    *now,
                ))
            })
            .await
    }

    /// Shared budgets by name, with their rows for the days from `since` on; all, or the one of this name.
    #[boxed]
    pub async fn list(
        &self,
        name: Option<&str>,
        tenant: Option<&str>,
        since: Timestamp,
    ) -> Result<Vec<SharedBudget>, StoreError> {
        let (action, readers) = ("list budgets", &self.0.readers);
        let rules =
            many(readers, action, &sql::SELECT_BUDGET_RULES, &[name.into(), tenant.into()], rule).await?;
        let values = [name.into(), tenant.into(), day_of(since).into()];
        let decode = |row: &Row| {
            let (day, waiting): (i64, i64) = (get(row, "day")?, get(row, "waiting")?);
            let day = Some(day).filter(|day| *day >= 0);
            let row_of = BudgetRow { day, budget: rows::budget(row)?, waiting: waiting.unsigned_abs() };
            Ok((get::<String>(row, "name")?, row_of))
        };
        let mut rows: BTreeMap<String, Vec<BudgetRow>> = BTreeMap::new();
        for (name, row) in many(readers, action, &sql::SELECT_BUDGET_ROWS, &values, decode).await? {
            rows.entry(name).or_default().push(row);
        }
        let shared = |(rule, _): (BudgetRule, _)| {
            let rows = rows.remove(&rule.name.to_string()).unwrap_or_default();
            SharedBudget { rule, rows }
        };
        Ok(rules.into_iter().map(shared).collect())
    }

    /// Returns the oldest job that waits for a shared budget, if one does.
    #[boxed]
    pub async fn oldest_waiting_job(&self, name: &str) -> Result<Option<JobId>, StoreError> {
        let (action, values) = ("read who waits for a budget", [name.into()]);
        one(&self.0.readers, action, &sql::SELECT_BUDGET_WAITER, &values, |row| Ok(JobId(get(row, "id")?)))
            .await
    }

    /// Returns the cost of an engagement.
    #[boxed]
    pub async fn cost_of(&self, engagement: &EngagementId) -> Result<EngagementCost, StoreError> {
        let phases = self.cost_of_phases(engagement).await?;
        let values = [engagement.as_str().into()];
        let decode = |row: &Row| {
            let (runs, duration_ms, cost) = (get(row, "runs")?, get(row, "duration_ms")?, get(row, "cost")?);
            let spent = Spending { runs, duration_ms, cost, ..Spending::default() };
            Ok((JobId(get(row, "job_id")?), get::<String>(row, "name")?, spent))
        };
        let tools =
            many(&self.0.readers, "add up tools", &sql::SELECT_COST_OF_TOOLS, &values, decode).await?;
        Ok(EngagementCost { phases, tools })
    }

    /// Returns the spending on models, by day, tenant and model, newest day first; that of all jobs, or of those with a
    /// tag and their delegates.
    #[boxed]
    pub async fn daily(
        &self,
        tenant: Option<&str>,
        tag: Option<&str>,
        since: Timestamp,
    ) -> Result<Vec<DailyCost>, StoreError> {
        let text = if tag.is_some() { &sql::SELECT_DAILY_COSTS_OF_TAG } else { &sql::SELECT_DAILY_COSTS };
        let values: Vec<Arg<'_>> =
            [since.0.into(), tenant.into()].into_iter().chain(tag.map(Arg::from)).collect();
        many(&self.0.readers, "add up costs", text, &values, |row| {
            let spent = Spending {
                runs: get(row, "runs")?,
                duration_ms: 0,
                tokens_in: get(row, "tokens_in")?,
                tokens_cached: get(row, "tokens_cached")?,
                tokens_out: get(row, "tokens_out")?,
                cost: get(row, "cost")?,
            };
            Ok(DailyCost {
                day: get(row, "day")?,
                tenant: get(row, "tenant")?,
                model: get(row, "model")?,
                spent,
            })
        })
        .await
    }

    /// Returns the tokens and the cost of an engagement, by job and phase.
    async fn cost_of_phases(
        &self,
        engagement: &EngagementId,
    ) -> Result<Vec<(JobId, Phase, Spending)>, StoreError> {
        let mut sums: BTreeMap<(i64, usize), (JobId, Phase, Spending)> = BTreeMap::new();
        for offset in (0_u32..).step_by(ROWS as usize) {
            let values = [engagement.as_str().into(), ROWS.into(), offset.into()];
            let (action, text) = ("add up phases", &sql::SELECT_CHECKPOINTS_OF_JOBS);
            let page = all(&self.0.readers, action, text, &values, |row| {
                let job = (get::<i64>(row, "job_seq")?, get::<String>(row, "job_id")?);
                Ok((job, journal::checkpoints(row)?))
            })
            .await?;
            let is_last = page.len() < ROWS as usize;
            for ((seq, id), done) in
                page.into_iter().flat_map(|(job, all)| all.into_iter().map(move |done| (job.clone(), done)))
            {
                let sum = sums.entry((seq, done.phase.index()));
                let (_, _, sum) = sum.or_insert_with(|| (JobId(id), done.phase, Spending::default()));
                sum.runs += 1;
                sum.duration_ms += done.duration_ms;
                sum.tokens_in += done.tokens_in;
                sum.tokens_cached += done.spent.tokens_cached;
                sum.tokens_out += done.tokens_out;
                sum.cost += done.spent.cost;
            }
            if is_last {
                break;
            }
        }
        Ok(sums.into_values().collect())
    }
}
