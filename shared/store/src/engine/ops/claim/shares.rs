//! Whose turn it is among the queues of a pool (OJS fair scheduling): stride scheduling with a virtual time that lasts.
//!
//! Every claim moves its queue's pass by a step that is the smaller the greater its weight is, and the queue with the
//! lowest pass goes next. The pool's own pass is its virtual time: a queue that had nothing to claim begins there again,
//! so that it neither owes nor saves anything.

use crate::PoolStrategy;

/// The step of a queue with weight 1.
const STRIDE: i64 = 1_000_000_000;

/// A queue of a pool within one claim.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub queue: String,
    pub weight: i64,
    /// Its virtual time.
    pub pass: i64,
    /// Jobs that were claimed from it since it is in its pool.
    pub claims: i64,
    /// True when it has nothing more to claim.
    empty: bool,
}

/// The queues of one pool that a claim names.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    pub pool: String,
    strategy: PoolStrategy,
    /// The pool's virtual time.
    pub pass: i64,
    /// The lowest pass of those that have jobs and that the claim does not name.
    elsewhere: Option<i64>,
    pub queues: Vec<Share>,
}

impl Shares {
    pub(super) fn new(pool: String, strategy: PoolStrategy, pass: i64) -> Self {
        Self { pool, strategy, pass, elsewhere: None, queues: Vec::new() }
    }

    /// Adds a queue that the claim names.
    pub(super) fn add(&mut self, queue: String, weight: i64, pass: i64, claims: i64) {
        let weight = if self.strategy == PoolStrategy::RoundRobin { 1 } else { weight.max(1) };
        self.queues.push(Share { queue, weight, pass: pass.max(self.pass), claims, empty: false });
    }

    /// Says that another queue of the pool has jobs, too: the virtual time must not pass it.
    pub(super) fn add_elsewhere(&mut self, pass: i64) {
        let pass = pass.max(self.pass);
        self.elsewhere = Some(self.elsewhere.map_or(pass, |lowest| lowest.min(pass)));
    }

    /// How many jobs to take from which queue, if `room` are wanted; empty when no queue has any.
    pub(super) fn plan(&self, room: usize) -> Vec<(usize, usize)> {
        let mut left: Vec<usize> = (0..self.queues.len()).filter(|at| !self.queues[*at].empty).collect();
        if left.is_empty() || room == 0 {
            return Vec::new();
        }
        if self.strategy == PoolStrategy::Strict {
            left.sort_by_key(|at| std::cmp::Reverse(self.queues[*at].weight));
            return vec![(left[0], room)];
        }
        let mut passes: Vec<i64> = self.queues.iter().map(|share| share.pass).collect();
        let mut counts: Vec<(usize, usize)> = Vec::new();
        for _ in 0..room {
            // Of equal passes the queue that was named first.
            let Some(next) = left.iter().copied().min_by_key(|at| passes[*at]) else { break };
            passes[next] += STRIDE / self.queues[next].weight;
            match counts.iter_mut().find(|(at, _)| *at == next) {
                Some((_, count)) => *count += 1,
                None => counts.push((next, 1)),
            }
        }
        counts
    }

    /// Of the `asked` jobs that were to be taken from a queue, `got` were there.
    pub(super) fn took(&mut self, at: usize, requested: usize, got: usize) {
        let share = &mut self.queues[at];
        share.empty = got < requested;
        let got = i64::try_from(got).unwrap_or(i64::MAX);
        share.claims = share.claims.saturating_add(got);
        if got > 0 && self.strategy != PoolStrategy::Strict {
            let stride = STRIDE / share.weight;
            // The pass at which the last of them began.
            let last = share.pass + stride * (got - 1);
            share.pass = last + stride;
            self.pass = self.pass.max(self.elsewhere.map_or(last, |lowest| lowest.min(last)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claims `claims` times `batch` jobs and returns how many came from each queue; `stock` is what the queues have.
    fn claims(shares: &mut Shares, stock: &mut [usize], claims: usize, batch: usize) -> Vec<usize> {
        let mut got = vec![0; stock.len()];
        for _ in 0..claims {
            shares.queues.iter_mut().for_each(|share| {
                share.empty = false;
                share.pass = share.pass.max(shares.pass);
            });
            let mut room = batch;
            loop {
                let plan = shares.plan(room);
                if plan.is_empty() {
                    break;
                }
                for (at, requested) in plan {
                    let taken = requested.min(stock[at]);
                    stock[at] -= taken;
                    got[at] += taken;
                    room -= taken;
                    shares.took(at, requested, taken);
                }
            }
        }
        got
    }

    fn pool(strategy: PoolStrategy, weights: &[i64]) -> Shares {
        let mut shares = Shares::new("p".to_owned(), strategy, 0);
        for (at, weight) in weights.iter().enumerate() {
            shares.add(format!("q{at}"), *weight, 0, 0);
        }
        shares
    }

    #[test]
    fn shares_are_as_the_weights_whatever_the_batch() {
        for batch in [1, 3, 7, 100] {
            let mut shares = pool(PoolStrategy::Weighted, &[5, 3, 2]);
            let got = claims(&mut shares, &mut [usize::MAX; 3], 4_000 / batch, batch);
            let all: usize = got.iter().sum();
            for (at, weight) in [5, 3, 2].into_iter().enumerate() {
                let off = got[at].abs_diff(all * weight / 10);
                assert!(off <= 2, "batches of {batch}: {got:?}");
            }
        }
    }

    #[test]
    fn an_idle_queue_does_not_save_up() {
        let mut shares = pool(PoolStrategy::Weighted, &[1, 1]);
        assert_eq!(claims(&mut shares, &mut [500, 0], 500, 1), [500, 0]);
        let got = claims(&mut shares, &mut [usize::MAX; 2], 100, 1);
        assert!(got[0].abs_diff(got[1]) <= 2, "{got:?}");
    }

    #[test]
    fn what_one_queue_has_not_the_others_get() {
        let mut shares = pool(PoolStrategy::Weighted, &[9, 1]);
        assert_eq!(claims(&mut shares, &mut [3, 100], 1, 10), [3, 7]);
    }

    #[test]
    fn round_robin_knows_no_weight_and_strict_nothing_else() {
        assert_eq!(claims(&mut pool(PoolStrategy::RoundRobin, &[9, 1]), &mut [99; 2], 5, 4), [10, 10]);
        assert_eq!(claims(&mut pool(PoolStrategy::Strict, &[1, 9]), &mut [99, 5], 2, 4), [3, 5]);
    }

    #[test]
    fn a_claim_of_some_queues_does_not_pass_the_others() {
        let mut shares = pool(PoolStrategy::Weighted, &[1]);
        shares.add_elsewhere(0);
        claims(&mut shares, &mut [usize::MAX], 50, 1);
        assert_eq!((shares.pass, shares.queues[0].pass), (0, 50 * STRIDE));
    }
}
