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
        /// The booked amount; never more than `reserved`.
        used: i64,
    },
}

/// The state of a budget in tokens. `settled + reserved ≤ limit` holds at every commit; the database repeats it as a
/// CHECK.
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

/// Returns the tokens to book for a call, from the provider's report.
///
/// The provider's count is untrusted: it may be absent, negative, absurd or above the cap of the call. The booked count
/// is never negative and never above the reservation. Without a report the whole reservation is booked, because the
/// call was paid for.
#[must_use]
pub fn book(reported: Option<i64>, reserved: i64) -> i64 {
    reported.map_or(reserved, |tokens| tokens.clamp(0, reserved))
}

/// A count of more than this many times the expected maximum of a call is not believed.
const BELIEVED_TIMES: i64 = 10;

/// Returns the tokens to book for a call without a budget: the provider's count, even above the expected maximum. An
/// absurd count is booked as [`book`] does.
#[must_use]
pub fn book_unlimited(reported: Option<i64>, reserved: i64) -> i64 {
    match reported {
        Some(tokens) if tokens > reserved && tokens <= reserved.saturating_mul(BELIEVED_TIMES) => tokens,
        reported => book(reported, reserved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_the_count_is_believed_unless_it_is_absurd() {
        assert_eq!(book_unlimited(Some(120), 67), 120);
        assert_eq!(book_unlimited(Some(30), 67), 30);
        assert_eq!(book_unlimited(Some(670), 67), 670);
        assert_eq!(book_unlimited(Some(671), 67), 67);
        assert_eq!(book_unlimited(Some(i64::MAX), 67), 67);
        assert_eq!(book_unlimited(Some(-1), 67), 0);
        assert_eq!(book_unlimited(None, 67), 67);
    }

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
    fn odd_reports_are_booked_within_the_reservation() {
        assert_eq!(book(Some(70), 100), 70);
        assert_eq!(book(Some(-5), 100), 0);
        assert_eq!(book(Some(i64::MAX), 100), 100);
        assert_eq!(book(None, 100), 100);
    }
}
