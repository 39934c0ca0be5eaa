//! Facts that would be logged again and again while something lasts, such as a store that does not answer.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time between two lines about the same fact.
const PAUSE: Duration = Duration::from_secs(60);

/// A fact that is logged once a minute, with the number of times that it was left out. Make it a `static` beside the
/// line.
#[derive(Debug)]
pub struct Seldom(Mutex<Option<(Instant, u64)>>);

impl Seldom {
    /// Returns a fact that was not logged yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Counts the fact. Returns how often it was left out since its last line when the next line is due.
    pub fn due(&self) -> Option<u64> {
        self.due_at(Instant::now())
    }

    fn due_at(&self, now: Instant) -> Option<u64> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *last {
            Some((at, left_out)) if now.duration_since(*at) < PAUSE => {
                *left_out += 1;
                None
            }
            other => other.replace((now, 0)).map_or(Some(0), |(_, left_out)| Some(left_out)),
        }
    }
}

/// Facts of one kind about many things, each of which is logged once a minute.
#[derive(Debug)]
pub struct SeldomEach(Mutex<BTreeMap<String, Seldom>>);

impl SeldomEach {
    /// The most things; beyond that they are forgotten, and logged again.
    const MOST: usize = 1_000;

    /// Returns facts that were not logged yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    /// As [`Seldom::due`], for the fact about this thing.
    pub fn due(&self, thing: &str) -> Option<u64> {
        let mut facts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if facts.len() >= Self::MOST && !facts.contains_key(thing) {
            facts.clear();
        }
        facts.entry(thing.to_owned()).or_default().due()
    }
}

impl Default for SeldomEach {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for Seldom {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_told_once_a_minute_with_its_number() {
        let (fact, begin) = (Seldom::new(), Instant::now());
        let after = |seconds: u64| fact.due_at(begin + Duration::from_secs(seconds));
        assert_eq!([after(0), after(1), after(59)], [Some(0), None, None]);
        assert_eq!([after(60), after(61), after(121)], [Some(2), None, Some(1)]);
    }

    #[test]
    fn each_thing_has_a_line_of_its_own() {
        let facts = SeldomEach::new();
        assert_eq!(
            [facts.due("a"), facts.due("b"), facts.due("a"), facts.due("b")],
            [Some(0), Some(0), None, None]
        );
    }
}
