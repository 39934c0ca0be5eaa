//! Budgets that engagements share, and what was spent: the calls.

use super::ops::budgets::{Answer as Did, Request as Asked};
use super::rows::{self, Fields, Inconsistency, get, maybe};
use super::session::Reader;
use super::views::all;
use super::writer::{Answer, Request};
use super::{Engine, journal};
use crate::{
    BudgetRow, Budgets, DailyCost, EngagementCost, OwnBudget, Raise, SharedBudget, Spending, StoreError, sql,
};
use async_trait::async_trait;
use std::collections::BTreeMap;
use turnstone_domain::budget::{Budget, BudgetName, BudgetRule, OnExceed, day_of};
use turnstone_domain::{EngagementId, JobId, Phase, Timestamp};

/// What a shared budget limits, and what the configuration or a manifest said of it last.
pub(super) fn rule(row: &impl Fields) -> Result<(BudgetRule, Option<String>), Inconsistency> {
    let rule = BudgetRule {
        name: rows::word(row, "name", |text| text.parse::<BudgetName>().ok())?,
        tokens: maybe(row, "tokens")?,
        tokens_per_day: maybe(row, "tokens_per_day")?,
        cost: maybe(row, "cost")?,
        cost_per_day: maybe(row, "cost_per_day")?,
        currency: get(row, "currency")?,
        on_exceed: maybe::<&str>(row, "on_exceed")?.and_then(OnExceed::parse),
        warn_at: maybe(row, "warn_at")?,
    };
    Ok((rule, maybe(row, "given")?))
}

/// Rows whose checkpoints are added up at once.
const ROWS: u32 = 256;

impl<R: Reader> Engine<R> {
    /// What an engagement has used and cost, by job and phase.
    async fn cost_of_phases(
        &self,
        engagement: &EngagementId,
    ) -> Result<Vec<(JobId, Phase, Spending)>, StoreError> {
        let mut sums: BTreeMap<(i64, usize), (JobId, Phase, Spending)> = BTreeMap::new();
        for offset in (0_u32..).step_by(ROWS as usize) {
            let values = [engagement.as_str().into(), ROWS.into(), offset.into()];
            let (action, text) = ("add up phases", &sql::SELECT_CHECKPOINTS_OF_JOBS);
            let page = all(&self.readers, action, text, &values, |row| {
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

    async fn of_budgets(&self, asked: Asked) -> Result<Did, StoreError> {
        match self.request(Request::Budgets(Box::new(asked))).await? {
            Answer::Budgets(did) => Ok(did),
            _ => Err(StoreError::Closed),
        }
    }
}

#[async_trait]
impl<R: Reader> Budgets for Engine<R> {
    async fn set(&self, rule: BudgetRule, given: Option<String>, now: Timestamp) -> Result<bool, StoreError> {
        match self.of_budgets(Asked::Set { rule, given, now }).await? {
            Did::Changed(changed) => Ok(changed),
            _ => Err(StoreError::Closed),
        }
    }

    async fn raise(
        &self,
        name: &str,
        tenant: Option<&str>,
        by: Raise,
        now: Timestamp,
    ) -> Result<Option<BudgetRule>, StoreError> {
        let (name, tenant) = (name.to_owned(), tenant.map(str::to_owned));
        match self.of_budgets(Asked::Raise { name, tenant, by, now }).await? {
            Did::Raised(rule) => Ok(rule),
            _ => Err(StoreError::Closed),
        }
    }

    async fn forget(&self, name: &str, tenant: Option<&str>, now: Timestamp) -> Result<bool, StoreError> {
        let (name, tenant) = (name.to_owned(), tenant.map(str::to_owned));
        match self.of_budgets(Asked::Forget { name, tenant, now }).await? {
            Did::Changed(changed) => Ok(changed),
            _ => Err(StoreError::Closed),
        }
    }

    async fn set_own(
        &self,
        engagement: &EngagementId,
        tenant: Option<&str>,
        change: OwnBudget,
        now: Timestamp,
    ) -> Result<Option<Budget>, StoreError> {
        let (engagement, tenant) = (engagement.clone(), tenant.map(str::to_owned));
        match self.of_budgets(Asked::SetOwn { engagement, tenant, change, now }).await? {
            Did::Own(budget) => Ok(budget),
            _ => Err(StoreError::Closed),
        }
    }

    async fn list(
        &self,
        name: Option<&str>,
        tenant: Option<&str>,
        since: Timestamp,
    ) -> Result<Vec<SharedBudget>, StoreError> {
        let (action, readers) = ("list budgets", &self.readers);
        let rules =
            all(readers, action, &sql::SELECT_BUDGET_RULES, &[name.into(), tenant.into()], rule).await?;
        let values = [name.into(), tenant.into(), day_of(since).into()];
        let decode = |row: &R::Row| {
            let (day, waiting): (i64, i64) = (get(row, "day")?, get(row, "waiting")?);
            let day = Some(day).filter(|day| *day >= 0);
            let row_of = BudgetRow { day, budget: rows::budget(row)?, waiting: waiting.unsigned_abs() };
            Ok((get::<String>(row, "name")?, row_of))
        };
        let mut rows: BTreeMap<String, Vec<BudgetRow>> = BTreeMap::new();
        for (name, row) in all(readers, action, &sql::SELECT_BUDGET_ROWS, &values, decode).await? {
            rows.entry(name).or_default().push(row);
        }
        let shared = |(rule, _): (BudgetRule, _)| {
            let rows = rows.remove(&rule.name.to_string()).unwrap_or_default();
            SharedBudget { rule, rows }
        };
        Ok(rules.into_iter().map(shared).collect())
    }

    async fn cost_of(&self, engagement: &EngagementId) -> Result<EngagementCost, StoreError> {
        let phases = self.cost_of_phases(engagement).await?;
        let values = [engagement.as_str().into()];
        let decode = |row: &R::Row| {
            let (runs, duration_ms, cost) = (get(row, "runs")?, get(row, "duration_ms")?, get(row, "cost")?);
            let spent = Spending { runs, duration_ms, cost, ..Spending::default() };
            Ok((JobId(get(row, "job_id")?), get::<String>(row, "name")?, spent))
        };
        let tools = all(&self.readers, "add up tools", &sql::SELECT_COST_OF_TOOLS, &values, decode).await?;
        Ok(EngagementCost { phases, tools })
    }

    async fn daily(&self, tenant: Option<&str>, since: Timestamp) -> Result<Vec<DailyCost>, StoreError> {
        let values = [since.0.into(), tenant.into()];
        all(&self.readers, "add up costs", &sql::SELECT_DAILY_COSTS, &values, |row| {
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
                tenant: maybe(row, "tenant")?,
                model: get(row, "model")?,
                spent,
            })
        })
        .await
    }
}
