//! The most work that an expression can make, before it is evaluated.
//!
//! A loop runs its body once for each item, and a loop inside of it multiplies that. So the cost is a polynomial in the
//! length of the longest list. An evaluation whose cost over what it reads is too high is refused.

use super::PolicyError;

/// The most steps of an evaluation; in a release build a step takes about 100 ns.
pub(super) const MOST_STEPS: u64 = 1_000_000;

/// Bytes that are compared or copied in the time of a step.
const BYTES_A_STEP: u64 = 16;

/// The size that every expression is expected to read: more work than this allows is refused at registration.
const EXPECTED: Read = Read { longest: 100, bytes: 1024 };

/// The size of what an evaluation reads.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Read {
    /// The items of its longest list or map.
    pub(super) longest: u64,
    /// The bytes of everything.
    pub(super) bytes: u64,
}

/// The parts of an expression that make work.
#[derive(Clone, Default, Debug)]
pub(super) struct Cost {
    /// Nodes by the number of loops around them.
    nodes: Vec<u64>,
    /// Calls that may read a whole variable each time, by the number of loops around them.
    wide: Vec<u64>,
    /// Additions that may make a longer text or list.
    growing: u64,
    /// The items of the longest literal.
    literal: u64,
}

impl Cost {
    /// Counts a node inside of so many loops.
    pub(super) fn node(&mut self, loops: usize) {
        count(&mut self.nodes, loops);
    }

    /// Counts a call that reads a whole variable, inside of so many loops.
    pub(super) fn wide(&mut self, loops: usize) {
        count(&mut self.wide, loops);
    }

    /// Counts an addition of texts or lists.
    pub(super) fn growing(&mut self) {
        self.growing += 1;
    }

    /// Counts a list or map in the source.
    pub(super) fn literal(&mut self, items: usize) {
        self.literal = self.literal.max(items as u64);
    }

    /// Returns true if nothing in it is repeated or grows.
    pub(super) fn is_flat(&self) -> bool {
        self.nodes.len() <= 1 && self.growing == 0
    }

    /// Checks that an evaluation over this takes few enough steps.
    ///
    /// # Errors
    /// [`PolicyError::TooCostly`].
    pub(super) fn check(&self, read: Read) -> Result<(), PolicyError> {
        let steps = self.steps(read);
        if steps <= MOST_STEPS { Ok(()) } else { Err(PolicyError::TooCostly { steps }) }
    }

    /// Checks the work over what every expression is expected to read.
    ///
    /// # Errors
    /// [`PolicyError::TooCostly`].
    pub(super) fn check_expected(&self) -> Result<(), PolicyError> {
        self.check(EXPECTED)
    }

    fn steps(&self, read: Read) -> u64 {
        let longest = read.longest.max(self.literal).max(1).saturating_mul(self.growing + 1);
        let whole = 1 + read.bytes / BYTES_A_STEP;
        let item = 1 + read.bytes / longest / BYTES_A_STEP;
        let over = |counts: &[u64], each: u64| {
            let term = |(loops, count): (u32, &u64)| {
                longest.saturating_pow(loops).saturating_mul(*count).saturating_mul(each)
            };
            (0..).zip(counts).map(term).fold(0, u64::saturating_add)
        };
        let copied = self.growing.saturating_mul(self.growing).saturating_mul(whole);
        let wide = self.wide.get(1..).unwrap_or_default();
        over(&self.nodes, item)
            .saturating_add(over(wide, whole).saturating_mul(longest))
            .saturating_add(copied)
    }
}

fn count(counts: &mut Vec<u64>, loops: usize) {
    if counts.len() <= loops {
        counts.resize(loops + 1, 0);
    }
    counts[loops] += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_loop_multiplies_and_growth_counts_twice() {
        let mut cost = Cost::default();
        cost.node(0);
        assert!(cost.is_flat());
        (0..4).for_each(|_| cost.node(1));
        let names = Read { longest: 1000, bytes: 0 };
        assert_eq!(cost.steps(names), 4001);
        cost.node(2);
        assert_eq!(cost.steps(names), 1_004_001);
        assert_eq!(cost.check(names), Err(PolicyError::TooCostly { steps: 1_004_001 }));
        assert_eq!((cost.check_expected(), cost.is_flat()), (Ok(()), false));
        let mut wide = Cost::default();
        wide.wide(0);
        assert_eq!(wide.steps(Read { longest: 10, bytes: 1600 }), 0, "once is what reading costs");
        wide.wide(1);
        assert_eq!(wide.steps(Read { longest: 10, bytes: 1600 }), 1010);
        let mut growing = Cost::default();
        (0..10).for_each(|_| growing.growing());
        assert_eq!(growing.steps(Read { longest: 1, bytes: 160 }), 1100);
    }
}
