//! The pauses of the scheduler: never longer than the fallback, and never a tight loop.

use crate::duties::{Entry, Interval};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use std::collections::HashMap;
use std::time::Duration;
use turnstone_domain::Timestamp;

/// The longest pause between two queries. A lost notification costs at most this.
pub(crate) const FALLBACK: Duration = Duration::from_secs(2);

/// The shortest pause between two queries, so that a storm of notifications costs a bounded number of queries.
pub(crate) const SHORTEST: Duration = Duration::from_millis(5);

/// Returns the pause before the next query when the next thing is due at `due`; zero when it is due already.
pub(crate) fn pause(due: Option<Timestamp>, now: Timestamp) -> Duration {
    let Some(due) = due else { return FALLBACK };
    match u64::try_from(due.since(now)) {
        Ok(0) | Err(_) => Duration::ZERO,
        Ok(ms) => Duration::from_millis(ms).clamp(SHORTEST, FALLBACK),
    }
}

/// The time at which each periodic duty completed last.
#[derive(Default)]
pub(crate) struct Timetable {
    through: HashMap<&'static str, Timestamp>,
}

impl Timetable {
    /// Returns true if a duty has to run now; `due` is true if anything is due.
    pub(crate) fn wants(&self, duty: &Entry, due: bool, now: Timestamp) -> bool {
        match duty.interval {
            Interval::WhenDue => due,
            // A duty runs also after the clock was set back.
            Interval::EveryMs(period) => {
                self.through.get(duty.name).is_none_or(|at| !(0..period).contains(&now.since(*at)))
            }
        }
    }

    /// Notes that a periodic duty has completed.
    pub(crate) fn through(&mut self, duty: &Entry, now: Timestamp) {
        self.through.insert(duty.name, now);
    }
}

/// Failures of the store. Only the first of a series is logged, and the pauses grow up to the fallback.
pub(crate) struct Setback {
    delays: Option<ExponentialBackoff>,
}

impl Setback {
    /// Returns the state without failures.
    pub(crate) fn none() -> Self {
        Self { delays: None }
    }

    /// Counts a failure of the store. Returns whether it is the first of a series, and how long to wait.
    pub(crate) fn failed(&mut self) -> (bool, Duration) {
        let first = self.delays.is_none();
        let delays = self.delays.get_or_insert_with(|| {
            ExponentialBuilder::new()
                .with_min_delay(Duration::from_millis(100))
                .with_max_delay(FALLBACK)
                .without_max_times()
                .build()
        });
        (first, delays.next().unwrap_or(FALLBACK))
    }

    /// Ends a series of failures. Returns whether there was one.
    pub(crate) fn recovered(&mut self) -> bool {
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
    fn a_period_begins_when_a_duty_is_through_and_a_clock_that_is_set_back_ends_it() {
        let duty = DUTIES.iter().find(|duty| duty.interval == Interval::EveryMs(60_000)).unwrap();
        let mut timetable = Timetable::default();
        let now = Timestamp(100_000);
        assert!(timetable.wants(duty, false, now), "it has never run");
        timetable.through(duty, now);
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
