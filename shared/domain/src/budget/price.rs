//! The price of a model's tokens.

/// The tokens of one call by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Prompt tokens, those from the provider's cache included.
    pub input: i64,
    /// The prompt tokens that were in the provider's cache.
    pub cached_input: i64,
    /// Completion tokens.
    pub output: i64,
}

/// The price of a model: millionths of a currency per million tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Price {
    /// Prompt tokens.
    pub input: i64,
    /// Prompt tokens from the provider's cache.
    pub cached_input: i64,
    /// Completion tokens.
    pub output: i64,
    /// ISO 4217, such as `USD`.
    pub currency: String,
}

const PER: i128 = 1_000_000;

impl Price {
    /// Returns the cost of a call, rounded up once to a whole millionth.
    #[must_use]
    pub fn of(&self, usage: Usage) -> i64 {
        let fresh = i128::from(usage.input) - i128::from(usage.cached_input);
        let sum = fresh * i128::from(self.input)
            + i128::from(usage.cached_input) * i128::from(self.cached_input)
            + i128::from(usage.output) * i128::from(self.output);
        whole(sum)
    }

    /// Returns the most that a call of at most this many tokens can cost: nothing comes from the cache.
    #[must_use]
    pub fn bound(&self, input: i64, output: i64) -> i64 {
        let dearest = self.input.max(self.cached_input);
        whole(i128::from(input) * i128::from(dearest) + i128::from(output) * i128::from(self.output))
    }

    /// Returns how many completion tokens `money` pays for beside a prompt of at most `input` tokens; negative when not
    /// even the prompt is paid for.
    #[must_use]
    pub fn affords(&self, money: i64, input: i64) -> i64 {
        let dearest = self.input.max(self.cached_input);
        let rest = i128::from(money) * PER - i128::from(input) * i128::from(dearest);
        if rest < 0 {
            return -1;
        }
        match i128::from(self.output) {
            0 => i64::MAX,
            output => i64::try_from(rest / output).unwrap_or(i64::MAX),
        }
    }
}

fn whole(sum: i128) -> i64 {
    i64::try_from((sum + PER - 1).div_euclid(PER)).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mini() -> Price {
        Price { input: 150_000, cached_input: 75_000, output: 600_000, currency: "USD".into() }
    }

    #[test]
    fn a_call_is_rounded_up_once() {
        let price = mini();
        let usage = |input, cached_input, output| Usage { input, cached_input, output };
        assert_eq!(price.of(usage(1_000_000, 0, 1_000_000)), 750_000);
        assert_eq!(price.of(usage(1, 0, 0)), 1, "0.15 of a millionth");
        assert_eq!(price.of(usage(1, 0, 1)), 1, "0.75 of a millionth, not twice one");
        assert_eq!(price.of(usage(100, 80, 10)), 15, "3 + 6 + 6");
        assert_eq!(price.of(Usage::default()), 0);
        let dear = Price { output: 2_000_000, ..mini() };
        assert_eq!(dear.of(usage(0, 0, i64::MAX)), i64::MAX, "it does not begin anew at nothing");
    }

    #[test]
    fn no_call_within_its_bounds_costs_more_than_the_bound() {
        let dear_cache = Price { cached_input: 190_000, ..mini() };
        for price in [mini(), dear_cache] {
            for (input, output) in [(1, 1), (7, 3), (1000, 4096), (99_999, 1)] {
                let bound = price.bound(input, output);
                for cached_input in [0, 1, input] {
                    assert!(price.of(Usage { input, cached_input, output }) <= bound);
                }
                let affordable = price.affords(bound, input);
                assert!(affordable >= output, "{affordable} {output}");
                assert!(price.bound(input, affordable) <= bound, "what is affordable is affordable");
            }
        }
        assert_eq!(mini().affords(0, 1), -1);
        assert_eq!(Price { output: 0, ..mini() }.affords(1, 1), i64::MAX);
    }
}
