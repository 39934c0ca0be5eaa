//! The turns and phases that a record lacks.
//!
//! The phases of a turn are committed in order, and a job begins its next turn after a complete one. So a record has a gap where
//! a phase or a turn between two others is missing, and where it ends before its last checkpoint. Unfinished turns are no gaps:
//! the last turn of a job may end after any phase. The next input of the engagement begins with a turn of its own.

use crate::{Phase, RecordEnd};
use std::cmp::Ordering;
use std::fmt;

/// The most gaps of a record that are named.
const NAMED: usize = 100;

/// A turn that a record lacks, or a phase of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RecordGap {
    /// The turn.
    pub turn: i64,
    /// The phase; `None` if the whole turn is missing.
    pub phase: Option<Phase>,
}

impl fmt::Display for RecordGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.phase {
            Some(phase) => write!(f, "turn {}, phase {phase} is missing", self.turn),
            None => write!(f, "turn {} is missing", self.turn),
        }
    }
}

/// Phases of a turn that follow one another in a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RecordedPhases {
    /// The turn.
    pub turn: i64,
    /// The number of the first phase.
    pub first: i64,
    /// How many there are.
    pub count: i64,
    /// The job that ran them.
    pub job: i64,
}

/// Returns the gaps of a record that begins with the turn `begins`. `end` is where it has to end, if that is known. At most 100
/// are named.
#[must_use]
pub fn gaps(begins: i64, mut recorded: Vec<RecordedPhases>, end: Option<RecordEnd>) -> Vec<RecordGap> {
    recorded.sort_unstable();
    let mut walk = Walk { turn: begins, phase: 0, job: None, gaps: Vec::new() };
    for part in recorded {
        walk.reach(part.turn, Some(part.job));
        if part.turn == walk.turn {
            walk.lack(part.first);
            walk.phase = walk.phase.max(part.first.saturating_add(part.count));
        }
        walk.job = Some(part.job);
    }
    if let Some((end, phase)) = end.and_then(|end| Some((end, end.phase?))) {
        walk.reach(end.turn, None);
        if end.turn == walk.turn {
            walk.lack(phase.number() + 1);
        }
    }
    walk.gaps
}

/// The number of phases of a turn.
const PHASES: i64 = Phase::ALL.len() as i64;

/// A walk along a record, with the place that is expected next.
struct Walk {
    turn: i64,
    phase: i64,
    job: Option<i64>,
    gaps: Vec<RecordGap>,
}

impl Walk {
    /// Moves to a later turn, which this job began.
    fn reach(&mut self, turn: i64, job: Option<i64>) {
        if turn.cmp(&self.turn) != Ordering::Greater {
            return;
        }
        if self.phase > 0 {
            if job.is_some() && job == self.job {
                self.lack(PHASES);
            }
            (self.turn, self.phase) = (self.turn + 1, 0);
        }
        while self.turn < turn && self.gaps.len() < NAMED {
            self.gaps.push(RecordGap { turn: self.turn, phase: None });
            self.turn += 1;
        }
        self.turn = turn;
    }

    /// Notes the phases of the current turn before this one.
    fn lack(&mut self, until: i64) {
        if self.phase == 0 && until == PHASES {
            return self.gaps.push(RecordGap { turn: self.turn, phase: None });
        }
        let missing = (self.phase..until.min(PHASES)).filter_map(Phase::from_index);
        self.gaps.extend(missing.map(|phase| RecordGap { turn: self.turn, phase: Some(phase) }));
        self.phase = self.phase.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(job: i64, turn: i64, phases: std::ops::Range<i64>) -> RecordedPhases {
        RecordedPhases { turn, first: phases.start, count: phases.end - phases.start, job }
    }

    fn end(turn: i64, phase: Phase) -> Option<RecordEnd> {
        Some(RecordEnd { writes: 9, turn, phase: Some(phase) })
    }

    fn named(gaps: &[RecordGap]) -> Vec<String> {
        gaps.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_record_with_an_unfinished_last_turn_has_no_gap() {
        assert_eq!(gaps(1, Vec::new(), None), []);
        assert_eq!(gaps(1, Vec::new(), Some(RecordEnd::default())), []);
        let running = vec![part(1, 1, 0..3), part(1, 1, 3..7), part(1, 2, 0..4)];
        assert_eq!(gaps(1, running, end(2, Phase::Infer)), []);
        let fork = vec![part(9, 4, 0..3), part(9, 4, 3..7)];
        assert_eq!(gaps(4, fork, end(4, Phase::Emit)), []);
        assert_eq!(gaps(4, Vec::new(), end(3, Phase::Emit)), [], "a fork that has not begun");
    }

    #[test]
    fn an_input_may_end_within_a_turn() {
        let recorded = vec![part(1, 1, 0..7), part(1, 2, 0..3), part(5, 3, 0..7)];
        assert_eq!(gaps(1, recorded.clone(), end(3, Phase::Emit)), []);
        let same = recorded.into_iter().map(|part| RecordedPhases { job: 1, ..part }).collect();
        let missing = ["infer", "exec", "persist", "emit"].map(|p| format!("turn 2, phase {p} is missing"));
        assert_eq!(named(&gaps(1, same, end(3, Phase::Emit))), missing);
    }

    #[test]
    fn phases_and_turns_that_are_missing_are_named() {
        let hole = vec![part(1, 1, 0..3), part(1, 1, 4..7)];
        assert_eq!(named(&gaps(1, hole, end(1, Phase::Emit))), ["turn 1, phase infer is missing"]);
        let turns = vec![part(1, 1, 0..7), part(1, 4, 0..7)];
        assert_eq!(named(&gaps(1, turns, None)), ["turn 2 is missing", "turn 3 is missing"]);
        let tail = vec![part(1, 1, 0..7), part(1, 2, 0..4)];
        assert_eq!(named(&gaps(1, tail, end(2, Phase::Exec))), ["turn 2, phase exec is missing"]);
        assert_eq!(named(&gaps(1, Vec::new(), end(1, Phase::Emit))), ["turn 1 is missing"]);
        let head = vec![part(1, 1, 2..7)];
        let missing = ["turn 1, phase init is missing", "turn 1, phase norm is missing"];
        assert_eq!(named(&gaps(1, head, None)), missing);
        assert_eq!(gaps(1, vec![part(1, i64::MAX, 0..7)], None).len(), NAMED, "a turn that no record has");
    }
}
