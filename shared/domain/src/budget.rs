//! Tokens an engagement may spend: reserved before a call, settled after it (design §5).

use serde::Serialize;

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
        /// What was reserved before.
        reserved: i64,
        /// What is booked; never more than `reserved`.
        used: i64,
    },
}

/// The state of a budget. `settled + reserved ≤ limit` holds at every commit; the database repeats it as a CHECK.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Budget {
    /// The most that may ever be spent; `None` is unlimited.
    pub limit: Option<i64>,
    /// Spent.
    pub settled: i64,
    /// Set aside for calls in flight.
    pub reserved: i64,
}

impl Budget {
    /// What may still be reserved; `None` is unlimited.
    #[must_use]
    pub fn left(&self) -> Option<i64> {
        self.limit.map(|limit| (limit - self.settled - self.reserved).max(0))
    }
}

/// What a model call may use at most, given what is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// To reserve: the prompt's upper bound plus the completion cap.
    pub reserve: i64,
    /// The completion cap to send to the provider.
    pub max_tokens: i64,
}

/// Tokens a prompt can take at most. Every token of a byte-level tokenizer covers at least one byte, so the bytes of
/// all texts bound the text's tokens; `parts` (messages and tools) pay for the chat template around each. What a
/// picture costs depends on its size in pixels and on the model, so each counts as the dearest one that we know of.
#[must_use]
pub fn prompt_upper_bound(bytes: usize, parts: usize, images: usize) -> i64 {
    const TEMPLATE_TOKENS_PER_PART: usize = 16;
    const TOKENS_PER_IMAGE: usize = 49_152;
    let template = parts.saturating_mul(TEMPLATE_TOKENS_PER_PART);
    let pictures = images.saturating_mul(TOKENS_PER_IMAGE);
    i64::try_from(bytes.saturating_add(template).saturating_add(pictures)).unwrap_or(i64::MAX)
}

/// Fits a call into what is left: the completion cap shrinks to what remains after the prompt.
///
/// `None` when not even a one-token answer fits.
#[must_use]
pub fn allow(prompt_bound: i64, wanted_max_tokens: i64, left: Option<i64>) -> Option<Allowance> {
    let room = left.map_or(i64::MAX, |left| left.saturating_sub(prompt_bound));
    let max_tokens = wanted_max_tokens.min(room);
    (max_tokens >= 1).then(|| Allowance { reserve: prompt_bound.saturating_add(max_tokens), max_tokens })
}

/// What to book for a call, from what the provider reported.
///
/// A provider's count is a claim by somebody else: it may be absent, negative, absurd or above what the call was
/// capped to. What is booked is never negative and never above the reservation; without a report the whole
/// reservation is booked, because the call was paid for.
#[must_use]
pub fn book(reported: Option<i64>, reserved: i64) -> i64 {
    reported.map_or(reserved, |tokens| tokens.clamp(0, reserved))
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
    fn odd_reports_are_booked_within_the_reservation() {
        assert_eq!(book(Some(70), 100), 70);
        assert_eq!(book(Some(-5), 100), 0);
        assert_eq!(book(Some(i64::MAX), 100), 100);
        assert_eq!(book(None, 100), 100);
    }
}
