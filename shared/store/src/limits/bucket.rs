//! The bucket itself, without any store: state in, decision out.
//!
//! It is filled evenly, by the limit per minute, and holds at most the limit of ten seconds, but always enough for
//! one request. A call that wants more tokens than the bucket ever holds is admitted when it is full and leaves a
//! debt. So within any 60 seconds the use is at most the limit and one burst. A burst is a sixth of the limit, or
//! the largest single call if that is more.
//!
//! Levels are counted in parts, 60,000 to a request or a token: a limit of n per minute fills n parts per
//! millisecond, and nothing is ever rounded away.

use super::Limit;
use turnstone_domain::Timestamp;

/// Parts of one request or one token.
const PARTS: i64 = 60_000;
/// The most per minute, and the most tokens of one call, that are distinguished: then every number stays exact in
/// Lua.
const MOST: i64 = 1_000_000_000;
/// The deepest debt.
const FLOOR: i64 = -(1 << 51);
/// A bucket that is further ahead than this was written by a clock that is wrong.
const AHEAD_MS: i64 = 60_000;

/// The level, in parts, as of a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bucket {
    pub requests: i64,
    pub tokens: i64,
    pub as_of: Timestamp,
}

/// A limit in parts, for a process that takes one of `share` equal shares of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Terms {
    pub requests: Option<Flow>,
    pub tokens: Option<Flow>,
    share: i64,
}

/// How one of the two is filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flow {
    /// Parts per millisecond.
    pub rate: i64,
    /// The most that is held.
    pub capacity: i64,
}

impl Flow {
    fn of(per_minute: u64, least: i64) -> Self {
        let rate = i64::try_from(per_minute).unwrap_or(MOST).clamp(1, MOST);
        Self { rate, capacity: (rate * PARTS / 6).max(least) }
    }

    fn filled(self, level: i64, elapsed_ms: i64) -> i64 {
        level.saturating_add(elapsed_ms.saturating_mul(self.rate)).min(self.capacity)
    }

    /// Milliseconds until `level` has grown to `wanted`, rounded up.
    fn wait(self, level: i64, wanted: i64) -> i64 {
        (wanted - level).max(0).saturating_add(self.rate - 1) / self.rate
    }
}

impl Terms {
    /// The whole limit.
    pub(crate) fn of(limit: &Limit) -> Self {
        Self::shared(limit, 1)
    }

    /// One of `share` equal shares: the bucket is that of the whole, and everything costs `share` times as much.
    pub(crate) fn shared(limit: &Limit, share: usize) -> Self {
        let share = i64::try_from(share).unwrap_or(MOST).clamp(1, 10_000);
        Self {
            requests: limit.requests_per_minute.map(|limit| Flow::of(limit, share * PARTS)),
            tokens: limit.tokens_per_minute.map(|limit| Flow::of(limit, share * PARTS)),
            share,
        }
    }

    /// Returns the cost of a request, in parts.
    pub(crate) fn request(&self) -> i64 {
        self.share * PARTS
    }

    /// Returns the cost of this number of tokens, in parts.
    pub(crate) fn cost(&self, tokens: i64) -> i64 {
        (tokens.clamp(-MOST, MOST) * PARTS).saturating_mul(self.share).clamp(FLOOR, -FLOOR)
    }
}

impl Bucket {
    /// Returns a full bucket, which no call has used yet.
    pub(crate) fn full(terms: &Terms, now: Timestamp) -> Self {
        let capacity = |flow: Option<Flow>| flow.map_or(0, |flow| flow.capacity);
        Self { requests: capacity(terms.requests), tokens: capacity(terms.tokens), as_of: now }
    }

    fn filled(self, terms: &Terms, now: Timestamp) -> Self {
        let as_of = if self.as_of.since(now) > AHEAD_MS { now } else { self.as_of };
        let elapsed = now.since(as_of).max(0);
        let level = |flow: Option<Flow>, level| flow.map_or(level, |flow| flow.filled(level, elapsed));
        Self {
            requests: level(terms.requests, self.requests),
            tokens: level(terms.tokens, self.tokens),
            as_of: as_of.max(now),
        }
    }

    /// Takes one request and `tokens` tokens; or nothing, and says when there may be enough.
    pub(crate) fn take(self, terms: &Terms, tokens: i64, now: Timestamp) -> (Self, Option<Timestamp>) {
        let mut bucket = self.filled(terms, now);
        let cost = terms.cost(tokens.max(0));
        let requests_ms = terms.requests.map_or(0, |flow| flow.wait(bucket.requests, terms.request()));
        let tokens_ms = terms.tokens.map_or(0, |flow| flow.wait(bucket.tokens, cost.min(flow.capacity)));
        let wait_ms = requests_ms.max(tokens_ms);
        if wait_ms > 0 {
            return (bucket, Some(bucket.as_of.plus_ms(wait_ms)));
        }
        if terms.requests.is_some() {
            bucket.requests -= terms.request();
        }
        if terms.tokens.is_some() {
            bucket.tokens = (bucket.tokens - cost).max(FLOOR);
        }
        (bucket, None)
    }

    /// Gives tokens back; takes them when the number is negative.
    pub(crate) fn give_back(self, terms: &Terms, tokens: i64, now: Timestamp) -> Self {
        let mut bucket = self.filled(terms, now);
        if let Some(flow) = terms.tokens {
            bucket.tokens = bucket.tokens.saturating_add(terms.cost(tokens)).clamp(FLOOR, flow.capacity);
        }
        bucket
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: Timestamp = Timestamp(1_000_000);

    fn limit(requests: impl Into<Option<u64>>, tokens: impl Into<Option<u64>>) -> Limit {
        Limit { requests_per_minute: requests.into(), tokens_per_minute: tokens.into() }
    }

    /// Asks for tokens after each of these pauses; returns the granted amounts with their times.
    fn grants(terms: &Terms, asks: &[(i64, i64, i64)]) -> Vec<(i64, i64)> {
        let (mut bucket, mut now, mut granted) = (Bucket::full(terms, START), START, Vec::new());
        for (after_ms, tokens, used) in asks {
            now = now.plus_ms(*after_ms);
            let (next, wait) = bucket.take(terms, *tokens, now);
            bucket = next;
            if wait.is_none() {
                bucket = bucket.give_back(terms, tokens - used, now);
                granted.push((now.0, *used));
            }
        }
        granted
    }

    proptest! {
        #[test]
        fn no_minute_sees_more_than_the_limit_and_one_burst(
            requests in 1_u64..200,
            tokens in 1_u64..5_000,
            share in 1_usize..6,
            asks in prop::collection::vec((0_i64..3_000, 0_i64..3_000, 0_i64..3_000), 1..300),
        ) {
            let asks: Vec<_> = asks.into_iter().map(|(ms, requested, used)| (ms, requested, used.min(requested))).collect();
            let largest = asks.iter().map(|ask| ask.1).max().unwrap_or(0);
            let granted = grants(&Terms::shared(&limit(requests, tokens), share), &asks);
            let (requests, tokens, share) = (requests as i64, tokens as i64, share as i64);
            for (at, (from, _)) in granted.iter().enumerate() {
                let minute: Vec<_> = granted[at..].iter().take_while(|(when, _)| when - from < 60_000).collect();
                let count = minute.len() as i64;
                prop_assert!(count * share <= requests + (requests / 6 + 1).max(share), "{count} requests");
                let used: i64 = minute.iter().map(|(_, used)| used).sum();
                prop_assert!(used * share <= tokens + (tokens / 6 + 1).max(largest * share), "{used} tokens");
            }
        }

        #[test]
        fn a_caller_that_waits_as_asked_is_admitted(
            requests in prop::option::of(1_u64..10_000_000_000),
            tokens in prop::option::of(1_u64..10_000_000_000),
            share in 1_usize..6,
            asks in prop::collection::vec(0_i64..2_000_000_000, 1..40),
        ) {
            let terms = Terms::shared(&limit(requests, tokens), share);
            let (mut bucket, mut now) = (Bucket::full(&terms, START), START);
            for tokens in asks {
                let (waited, wait) = bucket.take(&terms, tokens, now);
                bucket = waited;
                let Some(until) = wait else { continue };
                prop_assert!(until > now);
                let early = bucket.take(&terms, tokens, until.plus_ms(-1)).1;
                prop_assert!(early.is_some(), "one millisecond less would have done");
                now = until;
                let (taken, wait) = bucket.take(&terms, tokens, now);
                prop_assert_eq!(wait, None);
                bucket = taken;
            }
        }
    }

    #[test]
    fn a_slow_limit_is_not_rounded_away() {
        let terms = Terms::of(&limit(1, None));
        let mut bucket = Bucket::full(&terms, START).take(&terms, 0, START).0;
        // Asked every millisecond, it still fills: one request per minute, to the millisecond.
        for ms in 1..60_000 {
            let (next, wait) = bucket.take(&terms, 0, START.plus_ms(ms));
            assert_eq!(wait, Some(START.plus_ms(60_000)));
            bucket = next;
        }
        assert_eq!(bucket.take(&terms, 0, START.plus_ms(60_000)).1, None);
    }

    #[test]
    fn what_was_not_used_is_there_for_the_next_call() {
        let terms = Terms::of(&limit(None, 600));
        // 100 tokens are held at most; a call for 400 is admitted to a full bucket and leaves a debt of 300.
        let (bucket, wait) = Bucket::full(&terms, START).take(&terms, 400, START);
        assert_eq!((wait, bucket.tokens), (None, -300 * PARTS));
        assert_eq!(bucket.take(&terms, 400, START).1, Some(START.plus_ms(40_000)));
        assert_eq!(bucket.give_back(&terms, 390, START).tokens, 90 * PARTS);
        assert_eq!(bucket.give_back(&terms, 10_000, START).tokens, 100 * PARTS);
        assert_eq!(bucket.give_back(&terms, -100, START).tokens, -400 * PARTS);
    }

    #[test]
    fn clocks_that_differ_neither_fill_nor_block() {
        let terms = Terms::of(&limit(60, None));
        let empty = Bucket { requests: 0, tokens: 0, as_of: START };
        let (behind, wait) = empty.take(&terms, 0, START.plus_ms(-5_000));
        assert_eq!((behind, wait), (empty, Some(START.plus_ms(1_000))));
        let broken = Bucket { as_of: START.plus_ms(3_600_000), ..empty };
        assert_eq!(broken.take(&terms, 0, START), (empty, Some(START.plus_ms(1_000))));
    }
}
