//! Circuit breakers (OSSA §1.5, RS-26, RS-47): when calls to a service stop, and how they resume. Pure; the store keeps the
//! state, so that a whole fleet shares it.
//!
//! A breaker is about a service and not about one job: jobs that fail by themselves must not stop the others.

use crate::agent::errors::Breaker;
use crate::{JobId, Lease, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The failure of a job counts for this long, in milliseconds, where it counts once per job.
const FAILURE_COUNTS_MS: i64 = 300_000;

/// A trial call that takes longer than this, in milliseconds, lets another one through; its outcome still counts. The
/// job whose trial call failed last may make the next one only after the same time.
const TRIAL_MS: i64 = 60_000;

/// The pause before a call that found every place taken tries again, in milliseconds.
const ASK_AGAIN_MS: i64 = 1_000;

/// The permission to make a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// The breaker is closed.
    Free,
    /// The breaker is half-open, and this call is one of its trial calls.
    Trial,
    /// The call must not be made.
    Refused {
        /// The earliest time at which another request for permission can succeed.
        until: Timestamp,
    },
}

/// The state of one breaker.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BreakerState {
    /// The last calls, oldest first.
    calls: Vec<BreakerCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<Open>,
}

/// A call that returned: the failure of a job, or a success.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct BreakerCall {
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
    at: Timestamp,
}

/// A breaker that is open until a time, and half-open after it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Open {
    until: Timestamp,
    /// Trial calls that may be under way at the same time.
    places: u32,
    /// The trial calls that are under way.
    trials: Vec<Trial>,
    /// Trial calls that succeeded.
    successes: u32,
    /// The job whose trial call failed last, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<(String, Timestamp)>,
}

/// A trial call that is under way. It ends with the lease of its job, unless its outcome is known before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Trial {
    job: String,
    /// The token of the lease.
    lease: String,
    /// The time until which no other call may take its place.
    until: Timestamp,
}

fn milliseconds(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// Returns the time for which a trial call keeps its place, in milliseconds.
fn trial_ms(rule: &Breaker) -> i64 {
    milliseconds(rule.timeout_ms).max(if rule.once_per_job { TRIAL_MS } else { 0 })
}

impl Open {
    fn new(rule: &Breaker, now: Timestamp) -> Self {
        let until = now.plus_ms(milliseconds(rule.timeout_ms));
        Self { until, places: 1, trials: Vec::new(), successes: 0, failed: None }
    }

    /// Ends a trial call of this job; returns whether there was one.
    fn end_trial(&mut self, job: &str) -> bool {
        let found = self.trials.iter().position(|trial| trial.job == job);
        found.map(|at| self.trials.remove(at)).is_some()
    }

    /// Returns the places that no trial call has for itself.
    fn free_places(&self, now: Timestamp) -> usize {
        let taken = self.trials.iter().filter(|trial| now < trial.until).count();
        (self.places as usize).saturating_sub(taken)
    }
}

impl BreakerState {
    /// Asks for permission to make one call under the lease of a job.
    pub fn pass(&mut self, rule: &Breaker, lease: &Lease, now: Timestamp) -> Passage {
        let Some(open) = &mut self.open else { return Passage::Free };
        if now < open.until {
            return Passage::Refused { until: open.until };
        }
        let trial_ms = trial_ms(rule);
        if let Some((failed, at)) = &open.failed
            && *failed == lease.job.0
            && now < at.plus_ms(trial_ms)
        {
            return Passage::Refused { until: at.plus_ms(trial_ms) };
        }
        if open.free_places(now) == 0 {
            return Passage::Refused { until: now.plus_ms(ASK_AGAIN_MS) };
        }
        let (job, lease) = (lease.job.0.clone(), lease.token.clone());
        open.trials.push(Trial { job, lease, until: now.plus_ms(trial_ms) });
        Passage::Trial
    }

    /// Returns the jobs whose trial calls are under way, with the tokens of their leases.
    #[must_use]
    pub fn trials(&self) -> Vec<(JobId, String)> {
        let trials = self.open.iter().flat_map(|open| &open.trials);
        trials.map(|trial| (JobId(trial.job.clone()), trial.lease.clone())).collect()
    }

    /// Ends the trial calls whose leases are not among these tokens: their holders are gone.
    pub fn keep_trials(&mut self, held: &[String]) {
        if let Some(open) = &mut self.open {
            open.trials.retain(|trial| held.contains(&trial.lease));
        }
    }

    /// Counts a failed call of a job, after this number of successes that were not counted yet. Returns whether the failure
    /// opened the breaker.
    ///
    /// An open breaker ignores calls that began before it opened.
    pub fn failed(&mut self, rule: &Breaker, job: &str, successes: u32, now: Timestamp) -> bool {
        let known = self.calls.iter().any(|call| call.failed.as_deref() == Some(job));
        if let Some(open) = &mut self.open {
            if !open.end_trial(job) || now < open.until {
                return false;
            }
            if rule.once_per_job && known {
                // The job may be at fault. The place is free for another one.
                open.failed = Some((job.to_owned(), now));
                return false;
            }
            *open = Open { failed: Some((job.to_owned(), now)), ..Open::new(rule, now) };
            self.push(rule, Some(job), 1, now);
            return true;
        }
        self.push(rule, None, successes, now);
        self.push(rule, Some(job), 1, now);
        if self.failures() < i64::from(rule.failure_threshold.max(1)) {
            return false;
        }
        self.open = Some(Open::new(rule, now));
        true
    }

    /// Counts successes of calls that were not trial calls.
    pub fn succeeded(&mut self, rule: &Breaker, successes: u32, now: Timestamp) {
        if self.open.is_none() {
            self.push(rule, None, successes, now);
        }
    }

    /// Counts a trial call of a job that succeeded. Each makes room for two more, and the last of `half_open_requests` closes
    /// the breaker.
    pub fn trial_succeeded(&mut self, rule: &Breaker, job: &str, now: Timestamp) {
        let Some(open) = self.open.as_mut().filter(|open| now >= open.until) else { return };
        if !open.end_trial(job) {
            return;
        }
        open.successes = open.successes.saturating_add(1);
        open.places = open.places.saturating_mul(2);
        if open.successes >= rule.half_open_requests.max(1) {
            *self = Self::default();
        }
    }

    /// Frees the place of a trial call that was not made, or whose outcome does not depend on the service.
    pub fn trial_not_made(&mut self, job: &str) {
        if let Some(open) = &mut self.open {
            open.end_trial(job);
        }
    }

    /// Returns true if the state equals that of a new breaker.
    #[must_use]
    pub fn is_clear(&self) -> bool {
        self.open.is_none() && self.failures() == 0
    }

    /// Returns the number of failed calls among those that count.
    #[must_use]
    pub fn failures(&self) -> i64 {
        self.calls.iter().map(|call| i64::from(call.failed.is_some())).sum()
    }

    /// Returns the time until which an open breaker refuses every call. A half-open breaker returns a time that has
    /// passed.
    #[must_use]
    pub fn open_until(&self) -> Option<Timestamp> {
        self.open.as_ref().map(|open| open.until)
    }

    /// Returns how many more waiting jobs may try now; `None` when the breaker does not hold them back.
    #[must_use]
    pub fn room(&self, now: Timestamp) -> Option<usize> {
        self.open.as_ref().map(|open| if now < open.until { 0 } else { open.free_places(now) })
    }

    /// Returns the jobs with a failure that still counts.
    #[must_use]
    pub fn failing_jobs(&self) -> BTreeSet<&str> {
        self.calls.iter().filter_map(|call| call.failed.as_deref()).collect()
    }

    fn push(&mut self, rule: &Breaker, failed: Option<&str>, times: u32, now: Timestamp) {
        let window = rule.window();
        if failed.is_none() && times > 0 && (rule.failure_share >= 100 || times as usize >= window) {
            self.calls.clear();
            return;
        }
        if rule.once_per_job && failed.is_some() {
            self.calls.retain(|call| call.failed.as_deref() != failed);
        }
        let call = BreakerCall { failed: failed.map(str::to_owned), at: now };
        self.calls.extend(std::iter::repeat_n(call, (times as usize).min(window)));
        if rule.once_per_job {
            let old = now.plus_ms(-FAILURE_COUNTS_MS);
            self.calls.retain(|call| call.at > old);
        }
        let excess = self.calls.len().saturating_sub(window);
        self.calls.drain(..excess);
        // Successes before the first failure are dropped: they would only make the row longer.
        if self.failures() == 0 {
            self.calls.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn tool() -> Breaker {
        Breaker::default()
    }

    fn model() -> Breaker {
        Breaker::of_models()
    }

    /// Returns the lease of a job, whose token is its name.
    fn lease(job: &str) -> Lease {
        Lease { job: JobId(job.to_owned()), token: job.to_owned(), expires_at: NOW }
    }

    /// Returns a breaker of models that twenty jobs opened at [`NOW`].
    fn open() -> BreakerState {
        let mut state = BreakerState::default();
        for job in 0..20 {
            assert_eq!(state.failed(&model(), &format!("job {job}"), 0, NOW), job == 19);
        }
        state
    }

    fn half_open_at() -> Timestamp {
        NOW.plus_ms(1_000)
    }

    #[test]
    fn a_tool_opens_with_five_failures_in_a_row() {
        let mut state = BreakerState::default();
        for _ in 0..4 {
            assert!(!state.failed(&tool(), "a", 0, NOW));
        }
        state.succeeded(&tool(), 1, NOW);
        assert!(state.is_clear());
        let opened =
            [false, false, false, false, true].map(|opens| state.failed(&tool(), "a", 0, NOW) == opens);
        assert_eq!(opened, [true; 5]);
        assert_eq!(state.pass(&tool(), &lease("b"), NOW), Passage::Refused { until: NOW.plus_ms(60_000) });
    }

    #[test]
    fn ten_jobs_that_fail_for_ever_never_open_the_breaker_of_a_model() {
        let mut state = BreakerState::default();
        for failure in 0..1_000 {
            assert!(!state.failed(&model(), &format!("poison {}", failure % 10), 0, NOW));
            assert_eq!(state.pass(&model(), &lease("good"), NOW), Passage::Free);
        }
    }

    #[test]
    fn failures_below_the_share_do_not_open() {
        let mut state = BreakerState::default();
        for job in 0..1_000 {
            assert!(!state.failed(&model(), &format!("job {job}"), 2, NOW), "a third of the calls fails");
        }
        let mut state = BreakerState::default();
        let opens = (0..30).position(|job| state.failed(&model(), &format!("job {job}"), 1, NOW));
        assert_eq!(opens, Some(19), "half of the calls fail");
    }

    #[test]
    fn an_old_failure_of_a_job_counts_no_more() {
        let mut state = BreakerState::default();
        for job in 0..100 {
            let now = NOW.plus_ms(job * 30_000);
            assert!(!state.failed(&model(), &format!("job {job}"), 0, now), "ten in five minutes");
        }
    }

    #[test]
    fn half_open_lets_one_then_two_through_and_closes_after_three() {
        let (mut state, at) = (open(), half_open_at());
        assert_eq!(state.pass(&model(), &lease("a"), at.plus_ms(-1)), Passage::Refused { until: at });
        assert_eq!(state.room(at), Some(1));
        assert_eq!(state.pass(&model(), &lease("a"), at), Passage::Trial);
        assert!(matches!(state.pass(&model(), &lease("b"), at), Passage::Refused { until } if until > at));
        state.trial_succeeded(&model(), "a", at);
        assert_eq!(state.room(at), Some(2));
        assert_eq!(
            [state.pass(&model(), &lease("b"), at), state.pass(&model(), &lease("c"), at)],
            [Passage::Trial; 2]
        );
        assert!(matches!(state.pass(&model(), &lease("d"), at), Passage::Refused { .. }));
        state.trial_succeeded(&model(), "b", at);
        assert!(!state.is_clear());
        state.trial_succeeded(&model(), "c", at);
        assert!(state.is_clear());
        assert_eq!(state.room(at), None);
    }

    #[test]
    fn the_trial_of_another_job_opens_it_again_and_that_of_a_failing_job_does_not() {
        let (mut state, at) = (open(), half_open_at());
        assert_eq!(state.pass(&model(), &lease("job 3"), at), Passage::Trial);
        assert!(!state.failed(&model(), "job 3", 0, at), "its own repeated failure");
        assert_eq!(state.open_until(), Some(at));
        assert!(matches!(state.pass(&model(), &lease("job 3"), at.plus_ms(59_999)), Passage::Refused { .. }));
        assert_eq!(state.pass(&model(), &lease("new"), at), Passage::Trial);
        assert!(state.failed(&model(), "new", 0, at));
        assert_eq!(state.open_until(), Some(at.plus_ms(1_000)));
        state.trial_succeeded(&model(), "new", at.plus_ms(5));
        assert_eq!(
            state.pass(&model(), &lease("other"), at.plus_ms(5)),
            Passage::Refused { until: at.plus_ms(1_000) }
        );
        assert_eq!(state.pass(&model(), &lease("job 3"), at.plus_ms(60_000)), Passage::Trial);
    }

    #[test]
    fn calls_that_began_before_it_opened_change_nothing() {
        let (mut state, at) = (open(), half_open_at());
        let before = state.clone();
        assert!(!state.failed(&model(), "late", 0, NOW.plus_ms(10)));
        assert!(!state.failed(&model(), "late", 0, at));
        state.succeeded(&model(), 50, at);
        state.trial_succeeded(&model(), "late", at);
        assert_eq!(state, before);
    }

    #[test]
    fn a_trial_ends_with_the_lease_of_its_job() {
        let (mut state, at) = (open(), half_open_at());
        assert_eq!(state.pass(&model(), &lease("killed"), at), Passage::Trial);
        assert_eq!(state.trials(), [(JobId("killed".to_owned()), "killed".to_owned())]);
        state.keep_trials(&["killed".to_owned()]);
        assert_eq!(state.room(at), Some(0));
        state.keep_trials(&[]);
        assert_eq!(state.room(at), Some(1));
        assert_eq!(state.pass(&model(), &lease("a"), at), Passage::Trial);
        state.trial_not_made("a");
        assert_eq!(state.pass(&model(), &lease("b"), at), Passage::Trial);
    }

    #[test]
    fn a_trial_of_over_a_minute_lets_another_one_through_and_counts() {
        let (mut state, at) = (open(), half_open_at());
        assert_eq!(state.pass(&model(), &lease("slow"), at), Passage::Trial);
        assert!(matches!(state.pass(&model(), &lease("a"), at.plus_ms(59_999)), Passage::Refused { .. }));
        let later = at.plus_ms(60_000);
        assert_eq!(state.room(later), Some(1));
        assert_eq!(state.pass(&model(), &lease("a"), later), Passage::Trial);
        state.trial_succeeded(&model(), "slow", later);
        assert_eq!(state.room(later), Some(1), "one of two places is taken");
        state.trial_succeeded(&model(), "a", later);
        assert_eq!(state.pass(&model(), &lease("b"), later), Passage::Trial);
        state.trial_succeeded(&model(), "b", later);
        assert!(state.is_clear());
    }
}
