//! Steps of a clock: changes of the time of day that no elapsed time explains.

use super::Timestamp;

/// A smaller difference between a clock and monotonic time is drift, in milliseconds.
const SMALLEST_STEP_MS: i64 = 1_000;

/// A step forward is added to an earlier one that is not older than this, in milliseconds. Nearly every lease and attempt
/// is shorter.
const REMEMBERED_MS: i64 = 24 * 60 * 60 * 1_000;

/// One step of a clock. All times are of the clock after the step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClockStep {
    /// The earliest time that the clock may have shown after the step.
    pub from: Timestamp,
    /// The time at which the step was noticed.
    pub noticed_at: Timestamp,
    /// The length of the step in milliseconds, positive in both directions.
    pub by_ms: i64,
}

/// The steps that a clock made lately.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockSteps {
    /// The last step forward. What was written before its `from` is `by_ms` younger than the difference of the times.
    pub forward: Option<ClockStep>,
    /// The steps forward before it, as one step. What was written before its `from` is younger by this as well.
    pub earlier: Option<ClockStep>,
    /// The last step back. Times that were written before it may be in the future by up to `by_ms`.
    pub back: Option<ClockStep>,
}

impl ClockSteps {
    /// Returns these steps and one more, of `by_ms` milliseconds: negative for a step back.
    #[must_use]
    pub fn and(self, from: Timestamp, noticed_at: Timestamp, by_ms: i64) -> Self {
        let step = ClockStep { from, noticed_at, by_ms: by_ms.abs() };
        if by_ms >= 0 {
            let recent =
                |step: &ClockStep| noticed_at.since(step.noticed_at).saturating_sub(by_ms) < REMEMBERED_MS;
            let earlier_ms = self.earlier.filter(recent).map_or(0, |step| step.by_ms);
            let earlier = self.forward.filter(recent);
            let earlier =
                earlier.map(|last| ClockStep { by_ms: last.by_ms.saturating_add(earlier_ms), ..last });
            return Self { forward: Some(step), earlier, ..self };
        }
        // A step back undoes as much of the steps forward, the last one first.
        let mut rest = step.by_ms;
        let mut undone = |forward: ClockStep| {
            let undone_ms = rest.min(forward.by_ms);
            rest -= undone_ms;
            let (from, by_ms) = (forward.from.plus_ms(-undone_ms), forward.by_ms - undone_ms);
            Some(ClockStep { from, by_ms, ..forward }).filter(|forward| forward.by_ms > 0)
        };
        let (forward, earlier) = (self.forward.and_then(&mut undone), self.earlier.and_then(&mut undone));
        Self { forward, earlier, back: Some(step) }
    }
}

/// A clock as far as it was compared with monotonic time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Followed {
    /// The clock's time when monotonic time was 0, in milliseconds.
    offset_ms: i64,
    /// The monotonic time of the last comparison, in milliseconds.
    compared_ms: i64,
    steps: ClockSteps,
}

impl Followed {
    /// Returns a clock that shows `time` when this much monotonic time has passed, and has made no step.
    #[must_use]
    pub fn new(time: Timestamp, monotonic_ms: i64) -> Self {
        let offset_ms = time.0.saturating_sub(monotonic_ms);
        Self { offset_ms, compared_ms: monotonic_ms, steps: ClockSteps::default() }
    }

    /// Returns the clock's time at this monotonic time.
    #[must_use]
    pub fn at(&self, monotonic_ms: i64) -> Timestamp {
        Timestamp(self.offset_ms.saturating_add(monotonic_ms))
    }

    /// Adopts the time that the clock shows at this monotonic time, and returns the length of the step in milliseconds if
    /// it made one.
    pub fn compare(&mut self, time: Timestamp, monotonic_ms: i64) -> Option<i64> {
        let by_ms = time.since(self.at(monotonic_ms));
        let is_step = by_ms.abs() >= SMALLEST_STEP_MS;
        if is_step {
            // The step happened after the last comparison, whose time the clock would have shown like this.
            let from = self.at(self.compared_ms).plus_ms(by_ms);
            self.steps = self.steps.and(from, time, by_ms);
        }
        self.offset_ms = time.0.saturating_sub(monotonic_ms);
        self.compared_ms = self.compared_ms.max(monotonic_ms);
        is_step.then_some(by_ms)
    }

    /// Returns the steps that were found.
    #[must_use]
    pub fn steps(&self) -> ClockSteps {
        self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000_000);
    const MINUTES: i64 = 60_000;

    #[test]
    fn drift_is_adopted_and_is_no_step() {
        let mut clock = Followed::new(NOW, 5);
        assert_eq!(clock.at(105), NOW.plus_ms(100));
        assert_eq!(clock.compare(NOW.plus_ms(1_099), 105), None);
        assert_eq!(clock.at(205), NOW.plus_ms(1_199));
        assert_eq!(clock.steps(), ClockSteps::default());
    }

    #[test]
    fn a_step_begins_at_the_comparison_before_it() {
        let mut clock = Followed::new(NOW, 0);
        clock.compare(NOW.plus_ms(400), 400);
        let after = NOW.plus_ms(20 * MINUTES + 1_000);
        assert_eq!(clock.compare(after, 1_000), Some(20 * MINUTES));
        let step =
            ClockStep { from: NOW.plus_ms(20 * MINUTES + 400), noticed_at: after, by_ms: 20 * MINUTES };
        assert_eq!(clock.steps(), ClockSteps { forward: Some(step), ..ClockSteps::default() });
        assert_eq!(clock.at(2_000), after.plus_ms(1_000));
    }

    #[test]
    fn steps_forward_add_up_and_a_step_back_undoes_them() {
        let mut clock = Followed::new(NOW, 0);
        let known =
            |step: Option<ClockStep>| step.map(|step| (step.from.since(NOW) / MINUTES, step.by_ms / MINUTES));
        let steps = |clock: &Followed| (known(clock.steps().forward), known(clock.steps().earlier));
        for minutes in [10, 30, 60] {
            clock.compare(NOW.plus_ms(minutes * MINUTES), 0);
        }
        assert_eq!(steps(&clock), (Some((60, 30)), Some((30, 30))));
        clock.compare(NOW.plus_ms(55 * MINUTES), 0);
        assert_eq!(steps(&clock), (Some((55, 25)), Some((30, 30))));
        clock.compare(NOW.plus_ms(20 * MINUTES), 0);
        assert_eq!(steps(&clock), (None, Some((20, 20))));
        clock.compare(NOW, 0);
        assert_eq!(steps(&clock), (None, None), "the clock shows the time before the steps again");
        assert_eq!(known(clock.steps().back), Some((0, 20)));
    }
}
