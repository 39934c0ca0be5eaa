//! A gate: what a limit allows, what is used of it, and when it opens again.

use crate::engine::rows::{Fields, Inconsistency, get};
use turnstone_domain::Timestamp;
use turnstone_domain::terms::Rate;

/// A limit of a queue or of a key, with its current use.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    concurrency: Option<i64>,
    rate: Option<Rate>,
    throttle_ms: Option<i64>,
    pub window_at: Timestamp,
    pub started: i64,
    pub next_at: Timestamp,
    /// The time at which the waiting jobs are released.
    pub opens_at: Option<Timestamp>,
    /// How many are active.
    pub active: i64,
}

impl Gate {
    /// The gate of a row of `queues` or `rate_keys`; nothing is active yet.
    pub(super) fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        let rate = get::<Option<i64>>(row, "rate")?.zip(get(row, "period_ms")?);
        Ok(Self {
            concurrency: get(row, "concurrency")?,
            rate: rate.map(|(limit, period_ms)| Rate { limit, period_ms }),
            throttle_ms: get(row, "throttle_ms")?,
            window_at: Timestamp(get(row, "window_at")?),
            started: get(row, "started")?,
            next_at: Timestamp(get(row, "next_at")?),
            opens_at: get::<Option<i64>>(row, "opens_at")?.map(Timestamp),
            active: 0,
        })
    }

    /// Returns true when it limits anything.
    pub(super) fn limits(&self) -> bool {
        self.concurrency.is_some() || self.rate.is_some() || self.throttle_ms.is_some()
    }

    /// Returns true when active jobs have to be counted.
    pub(super) fn counts_active(&self) -> bool {
        self.concurrency.is_some()
    }

    /// How many may start now.
    pub(super) fn room(&self, now: Timestamp) -> i64 {
        if now < self.next_at {
            return 0;
        }
        let free = self.concurrency.map(|most| most - self.active);
        let left = self.rate.map(|rate| rate.limit - self.used(rate, now));
        let one = self.throttle_ms.map(|_| 1);
        [free, left, one].into_iter().flatten().min().unwrap_or(i64::MAX).max(0)
    }

    /// When time alone opens it: `None` when it is open, or waits for a job to end.
    pub(super) fn opens(&self, now: Timestamp) -> Option<Timestamp> {
        let window = self
            .rate
            .filter(|rate| self.used(*rate, now) >= rate.limit)
            .map(|rate| self.window_at.plus_ms(rate.period_ms));
        [Some(self.next_at), window].into_iter().flatten().filter(|at| *at > now).max()
    }

    /// The time from one start to the next, when many wait for it.
    pub(super) fn spacing_ms(&self) -> i64 {
        let rate = self.rate.map(|rate| rate.period_ms / rate.limit.max(1));
        rate.max(self.throttle_ms).unwrap_or(0).max(1)
    }

    /// A job starts.
    pub(super) fn take(&mut self, now: Timestamp) {
        self.active += 1;
        if let Some(rate) = self.rate {
            if self.used(rate, now) == 0 {
                (self.window_at, self.started) = (now, 0);
            }
            self.started += 1;
            if self.started >= rate.limit {
                self.next_at = self.next_at.max(self.window_at.plus_ms(rate.period_ms));
            }
        }
        if let Some(throttle_ms) = self.throttle_ms {
            self.next_at = self.next_at.max(now.plus_ms(throttle_ms));
        }
    }

    /// Starts in the window that `now` is in.
    fn used(&self, rate: Rate, now: Timestamp) -> i64 {
        if now >= self.window_at.plus_ms(rate.period_ms) { 0 } else { self.started }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(10_000);

    #[test]
    fn what_is_active_has_to_end_first() {
        let mut gate = Gate { concurrency: Some(2), active: 1, ..Gate::default() };
        assert_eq!(gate.room(NOW), 1);
        gate.take(NOW);
        assert_eq!((gate.room(NOW), gate.opens(NOW)), (0, None));
        // The limit was lowered below what runs.
        gate.concurrency = Some(1);
        assert_eq!(gate.room(NOW), 0);
    }

    #[test]
    fn a_window_begins_with_its_first_start_and_opens_when_it_is_over() {
        let mut gate = Gate { rate: Some(Rate { limit: 2, period_ms: 1_000 }), ..Gate::default() };
        gate.take(NOW);
        gate.take(NOW.plus_ms(900));
        assert_eq!(
            (gate.room(NOW.plus_ms(999)), gate.opens(NOW.plus_ms(999))),
            (0, Some(NOW.plus_ms(1_000)))
        );
        assert_eq!((gate.room(NOW.plus_ms(1_000)), gate.opens(NOW.plus_ms(1_000))), (2, None));
        gate.take(NOW.plus_ms(5_500));
        assert_eq!(gate.room(NOW.plus_ms(6_499)), 1);
    }

    #[test]
    fn a_throttle_keeps_starts_apart() {
        let mut gate = Gate { throttle_ms: Some(300), ..Gate::default() };
        assert_eq!(gate.room(NOW), 1);
        gate.take(NOW);
        assert_eq!((gate.room(NOW.plus_ms(299)), gate.room(NOW.plus_ms(300))), (0, 1));
        assert_eq!(gate.spacing_ms(), 300);
    }

    #[test]
    fn no_limit_allows_everything() {
        assert!(!Gate::default().limits());
        assert_eq!(Gate::default().room(NOW), i64::MAX);
    }
}
