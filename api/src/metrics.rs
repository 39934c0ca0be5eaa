//! The metrics for Prometheus: counts of requests, and counts from the store, which is queried at most every few
//! seconds.

mod held;

use crate::outage::store_failed;
use axum::extract::MatchedPath;
use axum::http::Method;
use held::StoreMetrics;
use prometheus::core::Collector;
use prometheus::proto::MetricFamily;
use prometheus::{
    Encoder, Gauge, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use turnstone_domain::{JobState, Timestamp};
use turnstone_store::{Store, StoreError, damaged_rows};
use turnstone_telemetry::names;

/// How long the counts of the store are shown before it is queried again, in milliseconds.
const FRESH_MS: i64 = 5_000;

/// Everything that is counted.
pub(crate) struct Metrics {
    started_at: Timestamp,
    registry: Registry,
    requests: IntCounterVec,
    durations: HistogramVec,
    jobs: IntGaugeVec,
    queued: IntGaugeVec,
    held: StoreMetrics,
    workers: IntGaugeVec,
    damaged: IntCounter,
    store_seconds: Gauge,
    uptime_seconds: Gauge,
    read_at: Mutex<Option<Timestamp>>,
}

impl Metrics {
    /// Metrics from now on; a server that cannot count serves nevertheless.
    pub(crate) fn started(now: Timestamp) -> Option<Self> {
        Self::new(now).inspect_err(|error| tracing::error!(%error, "nothing is counted for /metrics")).ok()
    }

    fn new(started_at: Timestamp) -> Result<Self, prometheus::Error> {
        let opts = |name: &str| Opts::new(name, names::meaning(name));
        let seconds =
            HistogramOpts::new(names::HTTP_REQUEST_DURATION, names::meaning(names::HTTP_REQUEST_DURATION))
                .buckets(vec![0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0]);
        let metrics = Self {
            started_at,
            registry: Registry::new(),
            requests: IntCounterVec::new(opts(names::HTTP_REQUESTS), &["method", "route", "status"])?,
            durations: HistogramVec::new(seconds, &["method", "route"])?,
            jobs: IntGaugeVec::new(opts(names::JOBS), &["state"])?,
            queued: IntGaugeVec::new(opts(names::QUEUE_JOBS), &["queue", "state"])?,
            held: StoreMetrics::new()?,
            workers: IntGaugeVec::new(opts(names::WORKERS), &["alive"])?,
            damaged: IntCounter::with_opts(opts(names::DAMAGED_ROWS))?,
            store_seconds: Gauge::with_opts(opts(names::STORE_SECONDS))?,
            uptime_seconds: Gauge::with_opts(opts(names::UPTIME_SECONDS))?,
            read_at: Mutex::new(None),
        };
        let all: [Box<dyn Collector>; 8] = [
            Box::new(metrics.damaged.clone()),
            Box::new(metrics.requests.clone()),
            Box::new(metrics.durations.clone()),
            Box::new(metrics.jobs.clone()),
            Box::new(metrics.queued.clone()),
            Box::new(metrics.workers.clone()),
            Box::new(metrics.store_seconds.clone()),
            Box::new(metrics.uptime_seconds.clone()),
        ];
        all.into_iter().try_for_each(|one| metrics.registry.register(one))?;
        metrics.held.register(&metrics.registry)?;
        Ok(metrics)
    }

    /// Counts a request. Unknown paths share one label, so that a client cannot invent labels.
    pub(crate) fn answered(&self, method: &Method, route: Option<&MatchedPath>, status: u16, took: Duration) {
        let route = route.map_or("unknown", MatchedPath::as_str);
        let method = match route {
            "unknown" => "any",
            _ => method.as_str(),
        };
        self.requests.with_label_values(&[method, route, &status.to_string()]).inc();
        self.durations.with_label_values(&[method, route]).observe(took.as_secs_f64());
    }

    /// Returns the metrics as text for Prometheus.
    ///
    /// # Errors
    /// The metrics could not be written.
    pub(crate) async fn text(&self, store: &Store, now: Timestamp) -> Result<String, prometheus::Error> {
        if self.begin(now)
            && let Err(error) = self.read(store, now).await
        {
            // The last counts stay; a scrape shows requests even when the store does not answer.
            store_failed!(warn, error, "metrics could not be read");
        }
        let uptime_ms = now.since(self.started_at);
        self.uptime_seconds.set(Duration::from_millis(u64::try_from(uptime_ms).unwrap_or(0)).as_secs_f64());
        self.damaged.reset();
        self.damaged.inc_by(damaged_rows());
        let mut families = self.registry.gather();
        // The agents' metrics of this process: of the whole server in `turnstone dev`, of nothing in a fleet's API.
        families.extend(turnstone_telemetry::metrics::gathered());
        written(families)
    }

    /// Returns true if the store's counts are out of date; the caller then queries them.
    fn begin(&self, now: Timestamp) -> bool {
        let mut read_at = self.read_at.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = read_at.is_some_and(|at| (0..FRESH_MS).contains(&now.since(at)));
        if !fresh {
            *read_at = Some(now);
        }
        !fresh
    }

    async fn read(&self, store: &Store, now: Timestamp) -> Result<(), StoreError> {
        let views = &store.views;
        let requested = Instant::now();
        views.ping().await?;
        self.store_seconds.set(requested.elapsed().as_secs_f64());
        let counts = views.counts(None).await?;
        for state in JobState::ALL {
            let count = counts.iter().find(|(known, _)| *known == state).map_or(0, |(_, count)| *count);
            self.jobs.with_label_values(&[state.as_str()]).set(number(count));
        }
        let queued = views.counts_by_queue().await?;
        self.queued.reset();
        for (queue, state, count) in queued {
            self.queued.with_label_values(&[queue.as_str(), state.as_str()]).set(number(count));
        }
        self.held.read(store, now).await?;
        let workers = views.workers().await?;
        let alive = workers.iter().filter(|worker| worker.is_alive(now)).count();
        self.workers.with_label_values(&["true"]).set(number(alive));
        self.workers.with_label_values(&["false"]).set(number(workers.len() - alive));
        Ok(())
    }
}

fn number<T: TryInto<i64>>(count: T) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// Metrics in the text format of Prometheus, by name.
///
/// # Errors
/// One of them has no form in that format.
pub(crate) fn written(mut families: Vec<MetricFamily>) -> Result<String, prometheus::Error> {
    families.sort_by(|a, b| a.name().cmp(b.name()));
    let mut text = Vec::new();
    TextEncoder::new().encode(&families, &mut text)?;
    String::from_utf8(text).map_err(|error| prometheus::Error::Msg(error.to_string()))
}
