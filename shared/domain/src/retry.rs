//! OJS retry policies (OJS retry §3–§6): when a failed job is tried again.

use crate::JobError;
use crate::duration::Span;
use crate::reported::HandlerWord;
use serde::{Deserialize, Serialize};

/// The most that a `Retry-After` of the other side can delay the next attempt: one hour.
pub const MAX_RETRY_AFTER_MS: u64 = 3_600_000;

/// The most attempts during an outage of a model's provider, for a job that states no policy. With the default delays they take
/// more than an hour.
pub const OUTAGE_ATTEMPTS: u32 = 25;

/// The longest interval of a policy: ten years.
const LONGEST_INTERVAL_MS: i64 = 10 * 365 * 86_400_000;

/// How the delay grows with the number of failures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backoff {
    /// `initial · coefficient^(n-1)`.
    #[default]
    Exponential,
    /// `initial · n`.
    Linear,
    /// `initial`.
    #[serde(alias = "none")]
    Constant,
    /// `initial · n^coefficient`.
    Polynomial,
}

/// The outcome after the last attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExhaustion {
    /// The job ends `discarded`.
    #[default]
    Discard,
    /// The job ends `discarded` and is kept in the dead letter queue.
    DeadLetter,
}

/// A retry policy with every default filled in; partial policies merge over the defaults.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct RetryPolicy {
    /// Executions in total; 0 and 1 both mean that nothing is retried.
    pub max_attempts: u32,
    /// ISO 8601.
    pub initial_interval: String,
    /// At least 1.0.
    pub backoff_coefficient: f64,
    /// ISO 8601; the cap of every delay, before and after jitter.
    pub max_interval: String,
    /// Multiplies the delay by a random factor of 0.5 to 1.5.
    pub jitter: bool,
    /// Error types or codes that are never retried; an entry that ends in `.*` matches by prefix.
    pub non_retryable_errors: Vec<String>,
    /// The outcome after the last attempt.
    pub on_exhaustion: OnExhaustion,
    /// How the delay grows.
    #[serde(alias = "backoff_type")]
    pub backoff_strategy: Backoff,
    /// True if the job stated how often or when it is tried, even as the default. Only an unstated policy leaves room
    /// for [`OUTAGE_ATTEMPTS`]. No client sends or reads this member.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stated: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_interval: "PT1S".to_owned(),
            backoff_coefficient: 2.0,
            max_interval: "PT5M".to_owned(),
            jitter: true,
            non_retryable_errors: Vec::new(),
            on_exhaustion: OnExhaustion::Discard,
            backoff_strategy: Backoff::Exponential,
            stated: false,
        }
    }
}

/// The consequence of a failure for the job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Try again after this many milliseconds.
    After {
        /// The delay.
        delay_ms: i64,
    },
    /// No further attempt.
    Exhausted,
}

impl RetryPolicy {
    /// Checks a policy as OJS retry §3.1 asks.
    ///
    /// # Errors
    /// The name of the wrong field, and the problem.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if !self.backoff_coefficient.is_finite() || self.backoff_coefficient < 1.0 {
            let why = format!("must be at least 1.0, not {}", self.backoff_coefficient);
            return Err(("backoff_coefficient", why));
        }
        let interval = |name, text: &str| match Span::parse(text) {
            Ok(span) if span.ms() <= LONGEST_INTERVAL_MS => Ok(span),
            Ok(_) => Err((name, format!("must be at most ten years, not {text}"))),
            Err(why) => Err((name, why)),
        };
        let initial = interval("initial_interval", &self.initial_interval)?;
        if interval("max_interval", &self.max_interval)? < initial {
            let (max, initial) = (&self.max_interval, &self.initial_interval);
            let why = format!("must not be shorter than initial_interval ({initial}), which {max} is");
            return Err(("max_interval", why));
        }
        Ok(())
    }

    /// Returns the delay after failure number `failures` (1-based), in milliseconds; `random` is uniform in `[0, 1)`.
    #[must_use]
    pub fn delay_ms(&self, failures: u32, random: f64) -> i64 {
        // The policy was checked when it was accepted, so each text is a duration.
        let ms = |text: &str, default: i64| Span::parse(text).map_or(default, Span::ms) as f64;
        let (initial, cap) = (ms(&self.initial_interval, 1_000), ms(&self.max_interval, 300_000));
        let n = f64::from(failures.max(1));
        let raw = match self.backoff_strategy {
            Backoff::Exponential => initial * self.backoff_coefficient.powf(n - 1.0),
            Backoff::Linear => initial * n,
            Backoff::Constant => initial,
            Backoff::Polynomial => initial * n.powf(self.backoff_coefficient),
        };
        let jittered = if self.jitter { raw.min(cap) * (0.5 + random) } else { raw };
        jittered.min(cap).max(0.0) as i64
    }

    /// Returns the consequence of failure number `failures` (this one included) with this error. For plain jobs every
    /// attempt counts, so there it is the number of the attempt (OJS retry §3.1).
    ///
    /// For agent jobs only failures count: parking, yielding and lost leases never cost a retry (design §3).
    #[must_use]
    pub fn decide(&self, failures: u32, error: &JobError, random: f64) -> Decision {
        let hopeless = match error.handler_word() {
            None => self.never_retries(error),
            Some(HandlerWord::Retry) => false,
            Some(HandlerWord::Discard | HandlerWord::DeadLetter | HandlerWord::Fail) => true,
        };
        let most = if error.is_of_an_outage() && !self.stated { OUTAGE_ATTEMPTS } else { self.max_attempts };
        let used_up = failures >= most && error.costs_a_retry();
        if hopeless || !error.retryable || used_up {
            return Decision::Exhausted;
        }
        // The requested wait is capped: a job must not sleep for years because of one header.
        let requested =
            error.retry_after_ms.map_or(0, |ms| i64::try_from(ms.min(MAX_RETRY_AFTER_MS)).unwrap_or(0));
        Decision::After { delay_ms: self.delay_ms(failures, random).max(requested) }
    }

    /// Returns the number of a failure (this one included) among those that are counted with it, as
    /// [`RetryPolicy::decide`] takes it. Failures in an outage are counted apart from the failures of the work, unless
    /// the job stated its policy.
    #[must_use]
    pub fn number(&self, failures: i64, outages: u32, error: &JobError) -> u32 {
        let failures = u32::try_from(failures).unwrap_or(u32::MAX);
        let before = match (self.stated, error.is_of_an_outage()) {
            (true, _) => failures.saturating_add(outages),
            (false, true) => outages,
            (false, false) => failures,
        };
        before.saturating_add(1)
    }

    /// Returns the policy as clients see it.
    #[must_use]
    pub fn shown(&self) -> Self {
        Self { stated: false, ..self.clone() }
    }

    fn never_retries(&self, error: &JobError) -> bool {
        let names = error.names();
        self.non_retryable_errors.iter().any(|entry| {
            names.iter().any(|name| match entry.strip_suffix(".*") {
                Some(prefix) => name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.')),
                None => name == entry,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::FailureKind;

    fn policy() -> RetryPolicy {
        RetryPolicy { jitter: false, ..RetryPolicy::default() }
    }

    #[test]
    fn delays_grow_and_are_capped() {
        let p = policy();
        assert_eq!((1..=4).map(|n| p.delay_ms(n, 0.0)).collect::<Vec<_>>(), [1000, 2000, 4000, 8000]);
        assert_eq!(p.delay_ms(30, 0.0), 300_000);
        let linear = RetryPolicy { backoff_strategy: Backoff::Linear, ..policy() };
        assert_eq!((1..=3).map(|n| linear.delay_ms(n, 0.0)).collect::<Vec<_>>(), [1000, 2000, 3000]);
        let constant = RetryPolicy { backoff_strategy: Backoff::Constant, ..policy() };
        assert_eq!((1..=3).map(|n| constant.delay_ms(n, 0.0)).collect::<Vec<_>>(), [1000; 3]);
        let polynomial = RetryPolicy { backoff_strategy: Backoff::Polynomial, ..policy() };
        assert_eq!((1..=3).map(|n| polynomial.delay_ms(n, 0.0)).collect::<Vec<_>>(), [1000, 4000, 9000]);
    }

    #[test]
    fn jitter_stays_within_half_and_one_and_a_half_and_below_the_cap() {
        let p = RetryPolicy { jitter: true, initial_interval: "PT2S".into(), ..policy() };
        assert_eq!(p.delay_ms(1, 0.0), 1000);
        assert_eq!(p.delay_ms(1, 0.999_999), 2999);
        assert_eq!(p.delay_ms(40, 0.999), 300_000);
    }

    #[test]
    fn the_last_attempt_and_hopeless_errors_are_not_retried() {
        let p = policy();
        let error = JobError::new(FailureKind::Model, "x");
        assert_eq!(p.decide(1, &error, 0.0), Decision::After { delay_ms: 1000 });
        assert_eq!(p.decide(3, &error, 0.0), Decision::Exhausted);
        assert_eq!(p.decide(1, &JobError::new(FailureKind::Policy, "x"), 0.0), Decision::Exhausted);
        let requested = JobError::new(FailureKind::RateLimited, "x").retry_after(Some(7000));
        assert_eq!(p.decide(1, &requested, 0.0), Decision::After { delay_ms: 7000 });
        for max_attempts in [0, 1] {
            assert_eq!(RetryPolicy { max_attempts, ..policy() }.decide(1, &error, 0.0), Decision::Exhausted);
        }
    }

    /// RS-26, issues 5 and 16: an outage delays jobs and loses none. A policy that the job states counts, also when it equals the
    /// default.
    #[test]
    fn an_outage_is_outlasted_unless_the_policy_says_how_often() {
        let away = JobError::new(FailureKind::ModelUnavailable, "x").of_an_outage();
        let default = RetryPolicy { on_exhaustion: OnExhaustion::DeadLetter, ..RetryPolicy::default() };
        let tried = |policy: &RetryPolicy, error: &JobError| {
            (1..).find(|n| policy.decide(*n, error, 0.5) == Decision::Exhausted).unwrap()
        };
        assert_eq!(tried(&default, &away), OUTAGE_ATTEMPTS);
        let waited: i64 = (1..OUTAGE_ATTEMPTS).map(|n| default.delay_ms(n, 0.0)).sum();
        assert!(waited > 30 * 60_000, "also with the shortest delays: {waited} ms");
        assert_eq!(tried(&default, &JobError::new(FailureKind::ModelUnavailable, "no such provider")), 3);
        for max_attempts in [1, 2, 3, 5] {
            let stated = RetryPolicy { max_attempts, stated: true, ..default.clone() };
            assert_eq!(tried(&stated, &away), max_attempts);
            let stored: RetryPolicy = serde_json::from_value(serde_json::to_value(&stated).unwrap()).unwrap();
            assert_eq!(stored, stated, "the store keeps what was stated");
        }
    }

    #[test]
    fn non_retryable_entries_match_exactly_or_by_prefix() {
        let error = JobError::new(FailureKind::ModelTimeout, "x");
        for (entry, stops) in
            [("OSSA_LLM_TIMEOUT", true), ("agent.*", true), ("agent", false), ("agent.model", false)]
        {
            let p = RetryPolicy { non_retryable_errors: vec![entry.into()], ..policy() };
            assert_eq!(p.decide(1, &error, 0.0) == Decision::Exhausted, stops, "{entry}");
        }
    }

    #[test]
    fn a_reported_error_is_meant_by_what_its_worker_said_and_never_by_a_guess() {
        let said = |code: &str, message: &str, named, class: &str| {
            let details = [("error_class".to_owned(), class.into())].into_iter();
            JobError::reported(code, message, true, named, details.filter(|_| !class.is_empty()).collect())
        };
        for (entry, error, stops) in [
            ("Auth.*", said("e", "x", Some("Auth.TokenExpired"), ""), true),
            ("Auth.*", said("e", "x", Some("AuthenticationError"), ""), false),
            ("Auth.*", said("e", "x", None, "Auth.Locked"), true),
            ("bad_args", said("bad_args", "x", Some("Other"), ""), true),
            ("Timeout", said("handler_error", "it timed out", None, ""), false),
        ] {
            let p = RetryPolicy { non_retryable_errors: vec![entry.into()], ..policy() };
            assert_eq!(p.decide(1, &error, 0.0) == Decision::Exhausted, stops, "{entry}: {error:?}");
        }
    }

    #[test]
    fn a_handler_may_decide_by_its_code() {
        let says = |code, retryable| JobError::reported(code, "x", retryable, None, serde_json::Map::new());
        let p = RetryPolicy { non_retryable_errors: vec!["RETRY".into()], ..policy() };
        assert_eq!(p.decide(1, &says("RETRY", true), 0.0), Decision::After { delay_ms: 1000 });
        assert_eq!(p.decide(3, &says("RETRY", true), 0.0), Decision::Exhausted);
        assert_eq!(p.decide(1, &says("RETRY", false), 0.0), Decision::Exhausted);
        for word in ["DISCARD", "DEAD_LETTER", "FAIL"] {
            assert_eq!(p.decide(1, &says(word, true), 0.0), Decision::Exhausted, "{word}");
        }
    }

    #[test]
    fn an_outage_uses_up_none_of_the_retries_of_the_work() {
        let (away, late) = (
            JobError::new(FailureKind::ModelUnavailable, "away").of_an_outage(),
            JobError::new(FailureKind::ModelTimeout, "late"),
        );
        let own = RetryPolicy { jitter: true, ..policy() };
        let ends = |policy: &RetryPolicy, failures, outages, error: &JobError| {
            policy.decide(policy.number(failures, outages, error), error, 0.0) == Decision::Exhausted
        };
        assert!(!ends(&own, 0, 10, &late) && !ends(&own, 1, 24, &late) && ends(&own, 2, 0, &late));
        assert!(!ends(&own, 2, 23, &away) && ends(&own, 0, 24, &away));
        let said = RetryPolicy { max_attempts: 5, stated: true, ..policy() };
        assert!(!ends(&said, 1, 2, &late) && ends(&said, 2, 2, &late) && ends(&said, 2, 2, &away));
    }

    #[test]
    fn wrong_policies_name_the_field() {
        let wrong = RetryPolicy { backoff_coefficient: 0.5, ..policy() };
        assert!(wrong.check().is_err_and(|(field, _)| field == "backoff_coefficient"));
        let wrong = RetryPolicy { max_interval: "PT0.1S".into(), ..policy() };
        assert!(wrong.check().is_err_and(|(field, _)| field == "max_interval"));
    }
}
