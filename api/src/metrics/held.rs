//! Metrics for alerts: ended and waiting jobs, open reviews, and the rest of the budgets.

use super::number;
use prometheus::core::Collector;
use prometheus::{GaugeVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry};
use std::time::Duration;
use turnstone_domain::Timestamp;
use turnstone_domain::budget::day_of;
use turnstone_store::{Store, StoreError};
use turnstone_telemetry::names;

/// The most budgets that are shown, by name; for an alert on more, poll `GET /budgets`.
const MOST_BUDGETS: usize = 100;

/// The metrics.
pub(super) struct StoreMetrics {
    ended: IntCounterVec,
    oldest: GaugeVec,
    reviews: IntGauge,
    transaction: IntGaugeVec,
    budgets: GaugeVec,
}

impl StoreMetrics {
    pub(super) fn new() -> Result<Self, prometheus::Error> {
        let opts = |name: &str| Opts::new(name, names::meaning(name));
        Ok(Self {
            ended: IntCounterVec::new(opts(names::JOBS_ENDED), &["queue", "state"])?,
            oldest: GaugeVec::new(opts(names::QUEUE_OLDEST), &["queue"])?,
            reviews: IntGauge::with_opts(opts(names::REVIEWS_OPEN))?,
            transaction: IntGaugeVec::new(opts(names::DATABASE_TRANSACTION), &["database", "pid"])?,
            budgets: GaugeVec::new(opts(names::BUDGET_USED), &["budget", "unit"])?,
        })
    }

    pub(super) fn register(&self, registry: &Registry) -> Result<(), prometheus::Error> {
        let all: [Box<dyn Collector>; 5] = [
            Box::new(self.ended.clone()),
            Box::new(self.oldest.clone()),
            Box::new(self.reviews.clone()),
            Box::new(self.transaction.clone()),
            Box::new(self.budgets.clone()),
        ];
        all.into_iter().try_for_each(|one| registry.register(one))
    }

    /// Queries the store.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) async fn read(&self, store: &Store, now: Timestamp) -> Result<(), StoreError> {
        let views = &store.views;
        let found = views.gauges().await?;
        // The store counts them: each read replaces the values.
        self.ended.reset();
        for (queue, state, jobs) in found.ended {
            self.ended.with_label_values(&[queue.as_str(), state.as_str()]).inc_by(jobs);
        }
        self.oldest.reset();
        for queue in views.queues().await? {
            self.oldest.with_label_values(&[queue.as_str()]).set(0.0);
        }
        for (queue, since) in found.oldest {
            let waited = u64::try_from(now.since(since)).unwrap_or(0);
            self.oldest.with_label_values(&[queue.as_str()]).set(Duration::from_millis(waited).as_secs_f64());
        }
        self.reviews.set(number(found.open_reviews));
        self.transaction.reset();
        if let Some(open) = found.oldest_transaction {
            let pid = open.pid.to_string();
            self.transaction.with_label_values(&[open.database.as_str(), &pid]).set(open.seconds);
        }
        self.read_budgets(store, now).await
    }

    async fn read_budgets(&self, store: &Store, now: Timestamp) -> Result<(), StoreError> {
        self.budgets.reset();
        let today = day_of(now);
        for shared in store.budgets.list(None, None, now).await?.into_iter().take(MOST_BUDGETS) {
            let name = shared.rule.name.to_string();
            for row in shared.rows.iter().filter(|row| row.day.is_none_or(|day| day == today)) {
                let (tokens, money) = (&row.budget, &row.budget.money);
                for (unit, limit, used) in [
                    ("tokens", tokens.limit, tokens.settled.saturating_add(tokens.reserved)),
                    ("money", money.limit, money.settled.saturating_add(money.reserved)),
                ] {
                    let Some(limit) = limit.filter(|limit| *limit > 0) else { continue };
                    let gauge = self.budgets.with_label_values(&[name.as_str(), unit]);
                    gauge.set(gauge.get().max(ratio(used, limit)));
                }
            }
        }
        Ok(())
    }
}

/// Returns a part as a share of the whole; exact enough for a gauge.
#[expect(clippy::cast_precision_loss, reason = "a gauge shows a few digits")]
fn ratio(part: i64, whole: i64) -> f64 {
    part as f64 / whole as f64
}
