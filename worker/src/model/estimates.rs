//! Knowledge about models for the estimates of their calls: the sizes of their contexts, and the surplus of calls of late.
//! The latter is forgotten with the process.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use turnstone_domain::Timestamp;

/// The number of calls that are "of late", and their greatest age in milliseconds. A budget that is too small for one surplus
/// is not refused for ever.
const CALLS: usize = 32;
const LATE_MS: i64 = 600_000;
/// The most models with a surplus; others keep their plain estimates.
const MOST_MODELS: usize = 1024;

/// The usage of a call above the estimate of its prompt and its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Surplus {
    /// Tokens.
    pub tokens: i64,
    /// Millionths of the currency.
    pub money: i64,
}

/// The knowledge about models, by `provider/model`.
#[derive(Debug, Default)]
pub struct Estimates {
    context_tokens: BTreeMap<String, i64>,
    late: Mutex<HashMap<String, VecDeque<(Timestamp, Surplus)>>>,
    recorded: bool,
}

impl Estimates {
    /// Returns the estimates for models with these contexts, in tokens.
    #[must_use]
    pub fn of(context_tokens: BTreeMap<String, i64>) -> Self {
        Self { context_tokens, ..Self::default() }
    }

    /// Returns those of a record that is run again: its counts were judged when it was made.
    #[must_use]
    pub fn of_record() -> Self {
        Self { recorded: true, ..Self::default() }
    }

    /// Returns true if counts are not judged.
    #[must_use]
    pub fn are_recorded(&self) -> bool {
        self.recorded
    }

    /// Returns the most tokens that a prompt and its answer can have together, if the configuration has it.
    #[must_use]
    pub fn context_tokens(&self, model: &str) -> Option<i64> {
        self.context_tokens.get(model).copied()
    }

    /// Returns the largest surplus of late.
    #[must_use]
    pub fn surplus(&self, model: &str, now: Timestamp) -> Surplus {
        let late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = late.get(model).into_iter().flatten().filter(|(at, _)| now.since(*at) < LATE_MS);
        calls.map(|(_, surplus)| surplus).fold(Surplus::default(), |most, one| Surplus {
            tokens: most.tokens.max(one.tokens),
            money: most.money.max(one.money),
        })
    }

    /// Learns what a call used above its estimate; a negative amount is none.
    pub fn learn(&self, model: &str, surplus: Surplus, now: Timestamp) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = late.contains_key(model);
        if !is_known && (surplus.tokens.max(surplus.money) <= 0 || late.len() >= MOST_MODELS) {
            return;
        }
        let calls = late.entry(model.to_owned()).or_default();
        calls.push_back((now, surplus));
        if calls.len() > CALLS {
            calls.pop_front();
        }
        if calls.iter().all(|(_, surplus)| surplus.tokens.max(surplus.money) <= 0) {
            late.remove(model);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_surplus_of_the_last_calls_counts() {
        let (estimates, of) = (Estimates::default(), |tokens, money| Surplus { tokens, money });
        let now = Timestamp(1_000_000);
        estimates.learn("p/m", of(-100, 0), now);
        assert_eq!(estimates.surplus("p/m", now), of(0, 0));
        estimates.learn("p/m", of(700, 0), now);
        estimates.learn("p/m", of(300, 20), now);
        assert_eq!(
            (estimates.surplus("p/m", now), estimates.surplus("p/other", now)),
            (of(700, 20), of(0, 0))
        );
        assert_eq!(estimates.surplus("p/m", now.plus_ms(LATE_MS)), of(0, 0), "that was long ago");
        for _ in 0..CALLS - 1 {
            estimates.learn("p/m", of(-5, -5), now);
        }
        assert_eq!(estimates.surplus("p/m", now), of(300, 20), "the first call is forgotten");
        estimates.learn("p/m", of(-5, -5), now);
        assert!(estimates.late.lock().unwrap().is_empty(), "nothing is kept of a model without a surplus");
    }
}
