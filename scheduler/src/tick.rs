//! The times of the scheduler: the pause before its next query, and when each periodic duty is to run.
//!
//! No pause is longer than two seconds, so a lost notification delays a duty by two seconds at most. No pause is shorter
//! than five milliseconds, so notifications cannot make it query without end.

use crate::duties::{Entry, Interval};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;
use turnstone_domain::Timestamp;

/// The longest pause between two queries: the polling interval beside the notifications.
pub(crate) const FALLBACK: Duration = Duration::from_secs(2);

/// The shortest pause between two queries, so that many notifications at once cost a bounded number of queries.
pub(crate) const SHORTEST: Duration = Duration::from_millis(5);

/// Returns the pause before the next query: zero when something is due, at most [`FALLBACK`] otherwise. `due` is the next due
/// time; `None` when nothing waits for a time.
pub(crate) fn pause(due: Option<Timestamp>, now: Timestamp) -> Duration {
    let Some(due) = due else { return FALLBACK };
    match u64::try_from(due.since(now)) {
        Ok(0) | Err(_) => Duration::ZERO,
        Ok(ms) => Duration::from_millis(ms).clamp(SHORTEST, FALLBACK),
    }
}

/// The time at which each periodic duty completed last, by its name. It is kept in memory, so a scheduler that leads for the
/// first time runs every periodic duty at once.
#[derive(Default)]
pub(crate) struct Timetable {
    completed: HashMap<&'static str, Timestamp>,
}

impl Timetable {
    /// Returns true if a duty has to run now. `due` is true if the store reports that anything is due.
    pub(crate) fn wants(&self, duty: &Entry, due: bool, now: Timestamp) -> bool {
        match duty.interval {
            Interval::WhenDue => due,
            // When the clock was set back, the last completion lies in the future: then the duty runs, too.
            Interval::EveryMs(period) => {
                self.completed.get(duty.name).is_none_or(|at| !(0..period).contains(&now.since(*at)))
            }
        }
    }

    /// Records that a periodic duty has completed.
    pub(crate) fn completed(&mut self, duty: &Entry, now: Timestamp) {
        self.completed.insert(duty.name, now);
    }
}

/// A series of failures of the store: its first failure is to be logged, and the pauses grow up to [`FALLBACK`].
pub(crate) struct Setback {
    delays: Option<ExponentialBackoff>,
    since: Option<Instant>,
}

impl Setback {
    /// Returns the state without failures.
    pub(crate) fn none() -> Self {
        Self { delays: None, since: None }
    }

    /// Counts a failure of the store. Returns true if it is the first of a series, and the pause before the next try.
    pub(crate) fn failed(&mut self) -> (bool, Duration) {
        let first = self.delays.is_none();
        self.since.get_or_insert_with(Instant::now);
        let delays = self.delays.get_or_insert_with(|| {
            ExponentialBuilder::new()
                .with_min_delay(Duration::from_millis(100))
                .with_max_delay(FALLBACK)
                .without_max_times()
                .build()
        });
        (first, delays.next().unwrap_or(FALLBACK))
    }

    /// Returns the time since the first failure of the series, or since [`Setback::measure_anew`].
    pub(crate) fn lasted(&self) -> Duration {
        self.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Measures the series from its next failure on.
    pub(crate) fn measure_anew(&mut self) {
        self.since = None;
    }

    /// Ends a series of failures, after a success. Returns true if there was one.
    pub(crate) fn recovered(&mut self) -> bool {
        self.since = None;
        self.delays.take().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::duties::DUTIES;

    #[test]
    fn the_pause_ends_when_something_is_due_and_never_later_than_the_fallback() {
        let now = Timestamp(10_000);
        assert_eq!(pause(None, now), FALLBACK);
        assert_eq!(pause(Some(now), now), Duration::ZERO);
        assert_eq!(pause(Some(now.plus_ms(-7)), now), Duration::ZERO);
        assert_eq!(pause(Some(now.plus_ms(1)), now), SHORTEST);
        assert_eq!(pause(Some(now.plus_ms(700)), now), Duration::from_millis(700));
        assert_eq!(pause(Some(now.plus_ms(3_600_000)), now), FALLBACK);
        assert_eq!(pause(Some(Timestamp(i64::MAX)), Timestamp(i64::MIN)), FALLBACK);
    }

    #[test]
    fn a_period_begins_when_a_duty_completes_and_a_clock_that_is_set_back_ends_it() {
        let duty = DUTIES.iter().find(|duty| duty.interval == Interval::EveryMs(60_000)).unwrap();
        let mut timetable = Timetable::default();
        let now = Timestamp(100_000);
        assert!(timetable.wants(duty, false, now), "it has never run");
        timetable.completed(duty, now);
        for (after, wanted) in [(0, false), (59_999, false), (60_000, true), (-1, true)] {
            assert_eq!(timetable.wants(duty, true, now.plus_ms(after)), wanted, "{after} ms after");
        }
    }

    #[test]
    fn failures_are_logged_once_with_growing_pauses() {
        let mut setback = Setback::none();
        assert!(!setback.recovered());
        let waits: Vec<(bool, Duration)> = (0..40).map(|_| setback.failed()).collect();
        assert_eq!(waits.iter().filter(|(first, _)| *first).count(), 1);
        assert!(waits[0].0 && waits.is_sorted_by_key(|(_, wait)| *wait));
        assert_eq!(waits[0].1, Duration::from_millis(100));
        assert_eq!(waits[39].1, FALLBACK);
        assert!(setback.recovered());
        assert_eq!(setback.failed(), (true, Duration::from_millis(100)));
    }
}
