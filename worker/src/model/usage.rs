//! The tokens of a call, as the provider counted them.

use serde::{Deserialize, Serialize};

/// Tokens as the provider counted them. The values may be arbitrary; [`Usage::within`] bounds them before
/// they are recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens, those from a cache included.
    pub input: i64,
    /// Prompt tokens from the provider's cache: a part of `input`, usually cheaper.
    #[serde(default)]
    pub cached_input: i64,
    /// Completion tokens, those of reasoning included.
    pub output: i64,
    /// Completion tokens of the model's hidden reasoning: a part of `output`. 0 when the provider does not
    /// count them.
    #[serde(default)]
    pub reasoning: i64,
}

impl std::ops::Add for Usage {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            input: self.input.saturating_add(more.input),
            cached_input: self.cached_input.saturating_add(more.cached_input),
            output: self.output.saturating_add(more.output),
            reasoning: self.reasoning.saturating_add(more.reasoning),
        }
    }
}

impl Usage {
    /// Returns a usage of which only the two sums are known.
    #[must_use]
    pub const fn of(input: i64, output: i64) -> Self {
        Self { input, cached_input: 0, output, reasoning: 0 }
    }

    /// Returns input and output together, without overflow.
    #[must_use]
    pub fn total(self) -> i64 {
        self.input.saturating_add(self.output)
    }

    /// Returns the part to record when `used` tokens are recorded in all. Input comes first, the rest is
    /// output, and no part exceeds its whole.
    #[must_use]
    pub fn within(self, used: i64) -> Self {
        let used = used.max(0);
        let input = self.input.clamp(0, used);
        let output = used - input;
        Self {
            input,
            cached_input: self.cached_input.clamp(0, input),
            output,
            reasoning: self.reasoning.clamp(0, output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_is_larger_than_its_whole_whatever_the_provider_says() {
        let honest = Usage { input: 100, cached_input: 60, output: 20, reasoning: 5 };
        assert_eq!(honest.within(honest.total()), honest);
        for (said, used, booked) in [
            (
                Usage { cached_input: 900, ..Usage::of(100, 20) },
                120,
                Usage { cached_input: 100, ..Usage::of(100, 20) },
            ),
            (Usage { cached_input: -4, reasoning: -4, ..Usage::of(100, 20) }, 120, Usage::of(100, 20)),
            (
                Usage { reasoning: i64::MAX, ..Usage::of(10, 20) },
                30,
                Usage { reasoning: 20, ..Usage::of(10, 20) },
            ),
            (
                Usage { cached_input: 80, ..Usage::of(i64::MAX, i64::MAX) },
                50,
                Usage { cached_input: 50, ..Usage::of(50, 0) },
            ),
            (Usage::of(-1, -1), 0, Usage::of(0, 0)),
        ] {
            assert_eq!(said.within(used), booked, "{said:?}");
        }
    }
}
