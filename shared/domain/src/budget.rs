//! Tokens and money that may be spent: reserved before a call, settled after it (design §5).

mod charge;
mod money;
mod price;
mod rule;

pub use charge::{BudgetWait, Charge, ChargeMove, Measure, Short};
pub use money::Amount;
pub use price::{Price, Usage};
pub use rule::{AppliedBudget, BudgetName, BudgetRule, OnExceed, delegate_named, name_of_delegate};

use serde::Serialize;

/// The day number of a row that counts the whole lifetime of a shared budget.
pub const ALL_DAYS: i64 = -1;

/// Returns the day of a time in UTC, counted from the epoch.
#[must_use]
pub fn day_of(at: crate::Timestamp) -> i64 {
    at.0.div_euclid(DAY_MS)
}

/// Returns the end of a day of UTC.
#[must_use]
pub fn end_of(day: i64) -> crate::Timestamp {
    crate::Timestamp(day.saturating_add(1).saturating_mul(DAY_MS))
}

const DAY_MS: i64 = 86_400_000;

/// The percentage of a limit at which a warning is given, unless the budget sets another.
pub const WARN_AT: i64 = 80;

/// One movement of a budget, applied in the same transaction as the checkpoint it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BudgetMove {
    /// Before INFER: set aside `tokens`. Refused when `settled + reserved + tokens` would exceed the limit.
    Reserve {
        /// The most the call can use.
        tokens: i64,
    },
    /// After INFER: give the reservation back and book what was used.
    Settle {
        /// The reservation.
        reserved: i64,
        /// The booked amount; more than `reserved` when the provider used more than the call was thought to use.
        used: i64,
    },
}

/// The state of a budget in tokens. A reservation is made only while `settled + reserved ≤ limit` holds with it. What is
/// settled may exceed the limit, by what answers used above their reservations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Budget {
    /// The most tokens that may ever be spent; `None` is unlimited.
    pub limit: Option<i64>,
    /// Tokens spent.
    pub settled: i64,
    /// Tokens set aside for calls in flight.
    pub reserved: i64,
    /// The same for money.
    pub money: Purse,
    /// The treatment of a job that needs more; `None` leaves it to the server.
    pub on_exceed: Option<OnExceed>,
    /// The percentage of a limit at which a warning is given; `None` is [`WARN_AT`].
    pub warn_at: Option<i64>,
}

impl Budget {
    /// Returns the tokens that may still be reserved; `None` is unlimited.
    #[must_use]
    pub fn left(&self) -> Option<i64> {
        self.tokens().left()
    }

    /// Returns the tokens alone.
    #[must_use]
    pub fn tokens(&self) -> Purse {
        Purse { limit: self.limit, settled: self.settled, reserved: self.reserved }
    }

    /// Returns the tokens or the money.
    #[must_use]
    pub fn purse(&self, measure: Measure) -> Purse {
        match measure {
            Measure::Tokens => self.tokens(),
            Measure::Money => self.money,
        }
    }

    /// Returns the spent amount at which a warning is due; `None` without a limit.
    #[must_use]
    pub fn warns_from(&self, measure: Measure) -> Option<i64> {
        let limit = self.purse(measure).limit.filter(|limit| *limit > 0)?;
        let percent = i128::from(self.warn_at.unwrap_or(WARN_AT).clamp(1, 100));
        i64::try_from((i128::from(limit) * percent).div_euclid(100)).ok().map(|from| from.max(1))
    }
}

/// One unit of a budget: tokens, or money in millionths of the currency. Money is always a whole number of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Purse {
    /// The most that may ever be spent; `None` is unlimited.
    pub limit: Option<i64>,
    /// Spent.
    pub settled: i64,
    /// Set aside for calls in flight.
    pub reserved: i64,
}

impl Purse {
    /// Returns the amount that may still be reserved; `None` is unlimited.
    #[must_use]
    pub fn left(&self) -> Option<i64> {
        let left = |limit: i64| limit.saturating_sub(self.settled).saturating_sub(self.reserved).max(0);
        self.limit.map(left)
    }
}

/// The most that a model call may use, given the rest of the budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// To reserve: the prompt's upper bound plus the completion cap.
    pub reserve: i64,
    /// The completion cap to send to the provider.
    pub max_tokens: i64,
}

/// Returns the most tokens that a prompt can take. Every token of a byte-level tokenizer covers at least one byte, so
/// the bytes of all texts bound the texts' tokens. `parts` (messages and tools) count the chat template around each.
/// The cost of a picture depends on its pixels and on the model, so each counts as the dearest that we know of.
#[must_use]
pub fn prompt_upper_bound(bytes: usize, parts: usize, images: usize) -> i64 {
    const TEMPLATE_TOKENS_PER_PART: usize = 16;
    const TOKENS_PER_IMAGE: usize = 49_152;
    let template = parts.saturating_mul(TEMPLATE_TOKENS_PER_PART);
    let pictures = images.saturating_mul(TOKENS_PER_IMAGE);
    i64::try_from(bytes.saturating_add(template).saturating_add(pictures)).unwrap_or(i64::MAX)
}

/// Fits a call into the rest of the budget: the completion cap shrinks to the rest after the prompt.
///
/// `None` when not even a one-token answer fits.
#[must_use]
pub fn allow(prompt_bound: i64, wanted_max_tokens: i64, left: Option<i64>) -> Option<Allowance> {
    let room = left.map_or(i64::MAX, |left| left.saturating_sub(prompt_bound));
    let max_tokens = wanted_max_tokens.min(room);
    (max_tokens >= 1).then(|| Allowance { reserve: prompt_bound.saturating_add(max_tokens), max_tokens })
}

/// A count of more than this many times the estimate of its call is not believed.
const BELIEVED_TIMES: i64 = 10;

/// Returns true if a call can have used so many tokens: none less than none, and none more than the model's context has.
/// Where the context is not known, ten times the estimate is the most.
#[must_use]
pub fn is_possible(reported: i64, estimate: i64, context_tokens: Option<i64>) -> bool {
    (0..=context_tokens.unwrap_or(estimate.saturating_mul(BELIEVED_TIMES))).contains(&reported)
}

/// Returns the tokens of a text of so many bytes, roughly: four bytes of most languages' texts are one token.
#[must_use]
pub fn estimate(bytes: usize) -> i64 {
    i64::try_from(bytes.div_ceil(4)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cap_shrinks_to_what_is_left() {
        assert_eq!(allow(100, 4096, Some(50_000)), Some(Allowance { reserve: 4196, max_tokens: 4096 }));
        assert_eq!(allow(100, 4096, Some(150)), Some(Allowance { reserve: 150, max_tokens: 50 }));
        assert_eq!(allow(100, 4096, Some(100)), None);
        assert_eq!(allow(100, 4096, Some(0)), None);
        assert_eq!(allow(100, 4096, None), Some(Allowance { reserve: 4196, max_tokens: 4096 }));
    }

    #[test]
    fn a_warning_is_due_from_the_percentage_on() {
        let budget = |limit, warn_at| Budget { limit: Some(limit), warn_at, ..Budget::default() };
        assert_eq!(budget(1000, None).warns_from(Measure::Tokens), Some(800));
        assert_eq!(budget(1000, Some(50)).warns_from(Measure::Tokens), Some(500));
        assert_eq!(budget(1, None).warns_from(Measure::Tokens), Some(1));
        assert_eq!(budget(i64::MAX, Some(100)).warns_from(Measure::Tokens), Some(i64::MAX));
        assert_eq!(budget(0, None).warns_from(Measure::Tokens), None, "nothing can ever be spent");
        assert_eq!(budget(1000, None).warns_from(Measure::Money), None);
    }

    #[test]
    fn a_count_is_possible_up_to_the_context_or_ten_times_the_estimate() {
        let possible = |reported| is_possible(reported, 67, None);
        assert!([0, 67, 120, 670].into_iter().all(possible));
        assert!(![-1, i64::MIN, 671, i64::MAX].into_iter().any(possible));
        let in_context = |reported| is_possible(reported, 67, Some(2_000));
        assert!([0, 671, 2_000].into_iter().all(in_context) && ![-1, 2_001].into_iter().any(in_context));
        assert!(is_possible(i64::MAX, i64::MAX, None), "no overflow");
    }

    #[test]
    fn a_text_has_a_token_for_four_bytes() {
        assert_eq!([0, 1, 4, 5, 200].map(estimate), [0, 1, 1, 2, 50]);
    }
}
