//! Rates, worked out afterwards from the moments at which jobs ended, so that nothing disturbs what is measured.

use crate::figures::median;
use std::collections::BTreeMap;
use std::time::Duration;

/// Jobs that ended, by tenths of a second.
pub struct Rates(BTreeMap<i64, i64>);

/// A tenth of a second, in milliseconds.
const TENTH: i64 = 100;
/// Over how long a rate is taken, in milliseconds.
const WINDOW: i64 = 1_000;

impl Rates {
    /// Of what the witness saw.
    pub fn of(ended: Vec<(i64, i64)>) -> Self {
        Self(ended.into_iter().collect())
    }

    fn between(&self, from: i64, to: i64) -> f64 {
        let ended: i64 = self.0.range(from..to).map(|(_, jobs)| jobs).sum();
        ended as f64 * 1e3 / (to - from).max(1) as f64
    }

    /// The rate in each whole second of a span of time; in the span itself when it is shorter.
    pub fn seconds(&self, from: i64, to: i64) -> Vec<f64> {
        let whole = usize::try_from((to - from) / WINDOW).unwrap_or_default();
        let starts = (0..whole).zip((from..).step_by(1_000));
        let rates: Vec<f64> = starts.map(|(_, at)| self.between(at, at + WINDOW)).collect();
        if rates.is_empty() { vec![self.between(from, to)] } else { rates }
    }

    /// The median of [`Rates::seconds`].
    pub fn usual(&self, from: i64, to: i64) -> f64 {
        let mut rates = self.seconds(from, to);
        rates.sort_by(f64::total_cmp);
        median(&rates)
    }

    /// How long after `from` a second begins in which so many jobs ended; none when there is none before `until`.
    pub fn reached(&self, least: f64, from: i64, until: i64) -> Option<Duration> {
        let mut at = from;
        while at + WINDOW <= until {
            if self.between(at, at + WINDOW) >= least {
                return u64::try_from(at - from).ok().map(Duration::from_millis);
            }
            at += TENTH;
        }
        None
    }
}
