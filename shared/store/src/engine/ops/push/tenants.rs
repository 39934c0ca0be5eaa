//! How much a tenant may enqueue (OJS multi-tenancy §8): a push that does not fit is refused whole.
//!
//! What waits is counted only for tenants that have limits, and their rows are locked before, so that pushes of several
//! processes cannot pass a limit together. Steps of workflows that run were accepted with their workflow, and agents that an
//! agent asks are a part of its job: they always fit, and are counted.

use super::unique::Verdict;
use super::{PushEntry, first_state};
use crate::engine::rows::{Fields, Inconsistency, TenantUse, get};
use crate::engine::session::Session;
use crate::engine::statement::{Writes, read, read_by};
use crate::{StoreError, sql};
use std::collections::{BTreeMap, BTreeSet};
use turnstone_domain::terms::Rate;
use turnstone_domain::{JobState, Timestamp};

/// The limits of a tenant's pushes, and its current counts.
struct Allowance {
    tenant: String,
    max_queue_depth: Option<i64>,
    max_scheduled: Option<i64>,
    rate: Option<Rate>,
    window_at: Timestamp,
    enqueued: i64,
    waiting: i64,
    scheduled: i64,
    used: bool,
}

/// The additions of a push.
#[derive(Default)]
struct New {
    jobs: i64,
    waiting: i64,
    scheduled: i64,
    at: Timestamp,
}

impl Allowance {
    fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        let rate = get::<Option<i64>>(row, "enqueue_rate")?.zip(get(row, "enqueue_period_ms")?);
        Ok(Self {
            tenant: get(row, "tenant")?,
            max_queue_depth: get(row, "max_queue_depth")?,
            max_scheduled: get(row, "max_scheduled")?,
            rate: rate.map(|(limit, period_ms)| Rate { limit, period_ms }),
            window_at: get(row, "window_at")?,
            enqueued: get(row, "enqueued")?,
            waiting: 0,
            scheduled: 0,
            used: false,
        })
    }

    /// Accepted jobs of the window that `now` is in.
    fn accepted(&self, rate: Rate, now: Timestamp) -> i64 {
        if now >= self.window_at.plus_ms(rate.period_ms) { 0 } else { self.enqueued }
    }

    /// Why more does not fit.
    fn refusal(&self, new: &New) -> Option<StoreError> {
        let accepted = self.rate.map(|rate| self.accepted(rate, new.at));
        let rules = [
            ("max_queue_depth", self.waiting, new.waiting, self.max_queue_depth),
            ("max_scheduled", self.scheduled, new.scheduled, self.max_scheduled),
            ("max_enqueue_rate", accepted.unwrap_or_default(), new.jobs, self.rate.map(|rate| rate.limit)),
        ];
        rules.into_iter().find_map(|(limit, current, more, maximum)| {
            let maximum = maximum.filter(|maximum| more > 0 && current + more > *maximum)?;
            Some(StoreError::TenantLimit { tenant: self.tenant.clone(), limit, current, maximum })
        })
    }

    fn take(&mut self, new: &New) {
        self.waiting += new.waiting;
        self.scheduled += new.scheduled;
        let Some(rate) = self.rate else { return };
        if self.accepted(rate, new.at) == 0 {
            (self.window_at, self.enqueued) = (new.at, 0);
        }
        self.enqueued += new.jobs;
        self.used = true;
    }
}

/// The limits of the pushes of several tenants.
#[derive(Default)]
pub(super) struct Allowances(BTreeMap<String, Allowance>);

impl Allowances {
    /// Locks the tenants that have limits and counts what waits for them.
    pub(super) async fn read(
        session: &mut Session,
        pushes: &[Vec<PushEntry<'_>>],
    ) -> Result<Self, StoreError> {
        let named: BTreeSet<&String> =
            pushes.iter().flatten().filter_map(|entry| entry.job.terms.tenant.as_ref()).collect();
        let keys = named.into_iter().cloned().collect();
        let (action, text) = ("read limits of tenants", &sql::LOCK_TENANTS_ON_PUSH);
        let mut allowances = Self::default();
        for mut allowance in read_by(session, action, text, keys, Allowance::decode).await? {
            if allowance.max_queue_depth.is_some() || allowance.max_scheduled.is_some() {
                let values = [allowance.tenant.as_str().into()];
                let (action, text) = ("count jobs of a tenant", &sql::SELECT_WAITING_OF_TENANT);
                let counted = read(session, action, text, &values, |row| {
                    Ok((get::<i64>(row, "waiting")?, get::<i64>(row, "scheduled")?))
                });
                (allowance.waiting, allowance.scheduled) = counted.await?.pop().unwrap_or_default();
            }
            allowances.0.insert(allowance.tenant.clone(), allowance);
        }
        Ok(allowances)
    }

    /// Why a push does not fit.
    pub(super) fn refusal(&self, entries: &[PushEntry<'_>], plan: &[Verdict]) -> Option<StoreError> {
        let requested =
            |entry: &PushEntry<'_>| entry.delegation.is_some_and(|delegation| delegation.call_id.is_some());
        if entries.iter().any(|entry| entry.step.is_some() || requested(entry)) {
            return None;
        }
        self.added(entries, plan).iter().find_map(|(tenant, new)| self.0.get(tenant)?.refusal(new))
    }

    /// A push is taken.
    pub(super) fn take(&mut self, entries: &[PushEntry<'_>], plan: &[Verdict]) {
        for (tenant, new) in self.added(entries, plan) {
            if let Some(allowance) = self.0.get_mut(&tenant) {
                allowance.take(&new);
            }
        }
    }

    /// Returns the additions of a push, by tenant, for those that have limits.
    fn added(&self, entries: &[PushEntry<'_>], plan: &[Verdict]) -> BTreeMap<String, New> {
        let mut sums: BTreeMap<String, New> = BTreeMap::new();
        if self.0.is_empty() {
            return sums;
        }
        for (entry, verdict) in entries.iter().zip(plan) {
            let Verdict::Take(run_at) = verdict else { continue };
            let Some(tenant) = entry.job.terms.tenant.as_ref().filter(|tenant| self.0.contains_key(*tenant))
            else {
                continue;
            };
            let new = sums.entry(tenant.clone()).or_default();
            let state = first_state(entry.job, *run_at);
            new.jobs += 1;
            new.waiting += i64::from(state != JobState::Pending);
            new.scheduled += i64::from(state == JobState::Scheduled);
            new.at = new.at.max(entry.job.created_at);
        }
        sums
    }

    /// Writes what was used of rates.
    pub(super) async fn write(self, session: &mut Session) -> Result<(), StoreError> {
        let used = self.0.into_values().filter(|allowance| allowance.used);
        let row = |Allowance { tenant, window_at, enqueued, .. }| TenantUse { tenant, window_at, enqueued };
        let rows = used.map(row).collect();
        let mut writes = Writes::default();
        writes.all("write limits of tenants", &sql::UPDATE_TENANTS_ON_PUSH, rows);
        writes.run(session).await
    }
}
