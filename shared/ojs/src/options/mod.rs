//! `options` of an enqueue request: where, when and how often a job runs (OJS HTTP binding §5.1), and on what terms.

mod canonical;
mod rate_limit;
mod retry;
mod section;
mod unique;

use crate::{OjsError, names, read, when};
pub use rate_limit::{LimitRequest, read_limit};
pub(crate) use section::duration;
use section::{Section, milliseconds};
use serde_json::Value;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::{RawObject, Terms, Timestamp};
pub(crate) use unique::UniquePolicy;

/// Fields of the envelope form (OJS core §3) that mean the same as the option of that name.
pub(crate) const ALSO_AT_THE_TOP: [&str; 13] = [
    "queue",
    "priority",
    "timeout_ms",
    "delay_until",
    "scheduled_at",
    "expires_at",
    "retry",
    "retry_policy",
    "unique",
    "tags",
    "visibility_timeout_ms",
    "visibility_timeout",
    "rate_limit",
];

/// The options, with every default filled in.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JobOptions {
    pub(crate) queue: String,
    pub(crate) priority: i64,
    pub(crate) run_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) timeout_ms: Option<i64>,
    pub(crate) retry: RetryPolicy,
    /// Becomes a term once the compared values are known.
    pub(crate) unique: Option<UniquePolicy>,
    pub(crate) terms: Terms,
}

impl JobOptions {
    pub(crate) fn read(members: &RawObject, now: Timestamp) -> Result<Self, OjsError> {
        let sent = Section { path: "options", members };
        sent.spelled(&[&ALSO_AT_THE_TOP[..], &["timeout", "metadata", "pending"]].concat())?;
        let time =
            |name: &str| sent.given(name, |value| read::text(value).and_then(|text| when::read(text, now)));
        let (delay_until, scheduled_at) = (time("delay_until")?, time("scheduled_at")?);
        sent.object("metadata")?;
        let policy = members.given("retry").or_else(|| members.given("retry_policy"));
        let either = |ms: &str, text: &str| Ok(sent.given(ms, milliseconds)?.or(sent.given(text, duration)?));
        Ok(Self {
            queue: sent.given("queue", queue_name)?.unwrap_or_else(|| "default".to_owned()),
            priority: sent.given("priority", priority)?.unwrap_or(0),
            run_at: scheduled_at.or(delay_until).unwrap_or(now).max(now),
            expires_at: time("expires_at")?,
            timeout_ms: either("timeout_ms", "timeout")?,
            retry: policy.map_or_else(|| Ok(RetryPolicy::default()), retry::retry)?,
            unique: sent.object("unique")?.map(|policy| UniquePolicy::read(&policy)).transpose()?,
            terms: Terms {
                visibility_ms: either("visibility_timeout_ms", "visibility_timeout")?,
                pending: sent.given("pending", flag)?.unwrap_or(false),
                rate_limit: sent
                    .object("rate_limit")?
                    .map(|limit| rate_limit::rate_limit(&limit))
                    .transpose()?,
                tags: sent.given("tags", tags)?.unwrap_or_default(),
                ..Terms::default()
            },
        })
    }
}

/// Reads tags, each once.
fn tags(value: &Value) -> Result<Vec<String>, String> {
    let mut tags = read::texts(value)?;
    let wrong = |tag: &&String| tag.is_empty() || tag.chars().count() > Terms::LONGEST_TAG;
    if let Some(tag) = tags.iter().find(wrong) {
        let (shown, most) = (read::shortened(tag, 40), Terms::LONGEST_TAG);
        return Err(format!("`{shown}` must have 1 to {most} characters"));
    }
    if tags.len() > Terms::MOST_TAGS {
        return Err(format!("must have at most {} tags, not {}", Terms::MOST_TAGS, tags.len()));
    }
    tags.sort_unstable();
    tags.dedup();
    Ok(tags)
}

fn flag(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("must be true or false, not {}", read::kind(value)))
}

fn queue_name(value: &Value) -> Result<String, String> {
    let name = read::filled_text(value)?;
    names::check_queue_name(name).map_err(|why| format!("`{}` {why}", read::shortened(name, 60)))?;
    Ok(name.to_owned())
}

/// Reads a number, or one of the words of OJS core.
fn priority(value: &Value) -> Result<i64, String> {
    let named = |word: &str| match word.to_ascii_lowercase().as_str() {
        "high" => Some(10),
        "normal" => Some(0),
        "low" => Some(-10),
        _ => None,
    };
    if let Some(level) = value.as_str().and_then(named) {
        return Ok(level);
    }
    match read::integer(value)? {
        number @ -100..=100 => Ok(number),
        number => Err(format!("must be from -100 to 100, not {number}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnstone_domain::retry::Backoff;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn read(options: Value) -> Result<JobOptions, OjsError> {
        JobOptions::read(&RawObject::of(options.as_object().unwrap()), NOW)
    }

    #[test]
    fn defaults() {
        let options = read(json!({})).unwrap();
        assert_eq!((options.queue.as_str(), options.priority, options.run_at), ("default", 0, NOW));
        assert_eq!(options.retry, RetryPolicy::default());
        assert_eq!((options.expires_at, options.timeout_ms), (None, None));
    }

    #[test]
    fn a_misspelt_member_is_refused_and_another_unknown_one_is_kept() {
        for (options, reported) in [
            (json!({"prioritiy": 3}), "options.prioritiy is unknown; did you mean `priority`?"),
            (
                json!({"unique": {"keys": ["type"], "on_conflit": "ignore"}}),
                "options.unique.on_conflit is unknown; did you mean `on_conflict`?",
            ),
            (
                json!({"rate_limit": {"key": "k", "concurency": 2}}),
                "options.rate_limit.concurency is unknown; did you mean `concurrency`?",
            ),
        ] {
            let refused = read(options.clone()).unwrap_err();
            assert!(refused.message.contains(reported), "{options}: {refused:?}");
        }
        // An unknown member of a limit would let another number of jobs start.
        for (limit, name) in [
            (json!({"key": "k", "limit": 3, "window": "PT1H"}), "options.rate_limit.window"),
            (json!({"key": "k", "rate": {"limit": 3, "per": "PT1H"}}), "options.rate_limit.rate.per"),
        ] {
            let refused = read(json!({"rate_limit": limit})).unwrap_err();
            assert!(refused.message.contains(name), "{refused:?}");
        }
        for kept in [json!({"x_priorit": 1}), json!({"ext_tags": []}), json!({"shard": 4})] {
            assert!(read(kept.clone()).is_ok(), "{kept}");
        }
    }

    #[test]
    fn a_priority_may_be_named() {
        for (word, level) in [("high", 10), ("NORMAL", 0), ("low", -10)] {
            assert_eq!(read(json!({"priority": word})).unwrap().priority, level);
        }
    }

    #[test]
    fn times_in_the_past_mean_now() {
        assert_eq!(read(json!({"delay_until": "1970-01-01T00:00:01Z"})).unwrap().run_at, NOW);
        assert_eq!(read(json!({"scheduled_at": "+PT5S"})).unwrap().run_at, NOW.plus_ms(5000));
        assert_eq!(read(json!({"expires_at": "+PT2S"})).unwrap().expires_at, Some(NOW.plus_ms(2000)));
    }

    #[test]
    fn policies_merge_over_the_defaults_and_tolerate_unknown_fields() {
        let retry = read(json!({"retry": {"max_attempts": 5, "strategy": "x", "backoff_type": "linear"}}))
            .unwrap()
            .retry;
        assert_eq!((retry.max_attempts, retry.backoff_strategy), (5, Backoff::Linear));
        assert_eq!(retry.initial_interval, "PT1S");
        let both = json!({"retry_policy": {"backoff_type": "linear", "backoff_strategy": "polynomial"}});
        assert_eq!(read(both).unwrap().retry.backoff_strategy, Backoff::Polynomial);
    }

    /// Issue 16: what a job states counts, also when it equals the default.
    #[test]
    fn a_policy_that_says_how_often_or_when_is_stated() {
        for (retry, stated) in [
            (json!({"max_attempts": 3}), true),
            (json!({"jitter": true}), true),
            (json!({"backoff_type": "exponential"}), true),
            (json!({}), false),
            (json!({"on_exhaustion": "dead_letter", "non_retryable_errors": ["X"], "stated": true}), false),
        ] {
            assert_eq!(read(json!({"retry": retry})).unwrap().retry.stated, stated, "{retry}");
        }
    }

    #[test]
    fn wrong_policies_are_422_and_name_the_field() {
        for (retry, field) in [
            (json!({"max_attempts": -1}), "max_attempts"),
            (json!({"max_attempts": "3"}), "max_attempts"),
            (json!({"backoff_coefficient": 0.5}), "backoff_coefficient"),
            (json!({"initial_interval": "1s"}), "initial_interval"),
            (json!({"max_interval": "PT0.1S"}), "max_interval"),
            (json!({"jitter": "yes"}), "jitter"),
            (json!({"non_retryable_errors": [1]}), "non_retryable_errors"),
            (json!({"on_exhaustion": "explode"}), "on_exhaustion"),
            (json!({"backoff_strategy": "weekly"}), "backoff_strategy"),
            (json!({"backoff_coefficient": "1e400"}), "backoff_coefficient"),
            (json!(3), "retry"),
        ] {
            let error = read(json!({"retry": retry})).unwrap_err();
            assert_eq!((error.status, error.error_type), (422, "validation_error"), "{error}");
            assert!(error.message.contains(field), "{error}");
        }
    }

    #[test]
    fn wrong_options_are_400_and_name_the_field() {
        for (options, field) in [
            (json!({"queue": "My Queue"}), "queue"),
            (json!({"queue": ""}), "queue"),
            (json!({"queue": "-a"}), "queue"),
            (json!({"queue": 3}), "queue"),
            (json!({"queue": "q".repeat(129)}), "queue"),
            (json!({"priority": 101}), "priority"),
            (json!({"priority": -101}), "priority"),
            (json!({"priority": 1.5}), "priority"),
            (json!({"priority": "urgent"}), "priority"),
            (json!({"timeout_ms": 0}), "timeout_ms"),
            (json!({"timeout_ms": "1s"}), "timeout_ms"),
            (json!({"timeout_ms": u64::MAX}), "timeout_ms"),
            (json!({"delay_until": "2026-01-01T00:00:00"}), "delay_until"),
            (json!({"scheduled_at": 5}), "scheduled_at"),
            (json!({"expires_at": "soon"}), "expires_at"),
            (json!({"tags": "x"}), "tags"),
            (json!({"tags": [1]}), "tags"),
            (json!({"metadata": 5}), "metadata"),
            (json!({"pending": "yes"}), "pending"),
            (json!({"visibility_timeout_ms": 0}), "visibility_timeout_ms"),
            (json!({"visibility_timeout_ms": i64::MAX}), "visibility_timeout_ms"),
            (json!({"visibility_timeout": "soon"}), "visibility_timeout"),
            (json!({"unique": true}), "unique"),
            (json!({"rate_limit": 5}), "rate_limit"),
        ] {
            let error = read(options).unwrap_err();
            assert_eq!((error.status, error.code), (400, "invalid_request"), "{error}");
            assert_eq!(error.details["field"], format!("options.{field}"), "{error}");
        }
    }

    #[test]
    fn terms_are_read() {
        let terms = |options: Value| read(options).unwrap().terms;
        assert_eq!(terms(json!({})), Terms::default());
        assert_eq!(terms(json!({"visibility_timeout_ms": 3000})).visibility_ms, Some(3000));
        assert_eq!(terms(json!({"visibility_timeout": "PT1M"})).visibility_ms, Some(60_000));
        assert_eq!(terms(json!({"visibility_timeout": 5})).visibility_ms, Some(5000));
        assert!(terms(json!({"pending": true})).pending);
        assert!(terms(json!({"rate_limit": {"max_per_second": 2}})).rate_limit.is_some());
        assert!(read(json!({"unique": {}})).unwrap().unique.is_some());
    }

    #[test]
    fn numbers_are_read_only_where_they_mean_something() {
        let options = |text: &str| JobOptions::read(&serde_json::from_str(text).unwrap(), NOW);
        assert!(options(r#"{"x":1e400,"metadata":{"m":1e400},"retry":{"initial_delay_ms":1e400}}"#).is_ok());
        for (text, status, field) in [
            (r#"{"priority":1e400}"#, 400, "options.priority"),
            (r#"{"timeout_ms":1e999}"#, 400, "options.timeout_ms"),
            (r#"{"retry":{"max_attempts":1e400}}"#, 422, "options.retry.max_attempts"),
            (r#"{"retry":{"max_atempts":1}}"#, 422, "options.retry.max_atempts"),
            (r#"{"rate_limit":{"max_per_second":1e400}}"#, 400, "options.rate_limit.max_per_second"),
        ] {
            let error = options(text).unwrap_err();
            assert_eq!((error.status, error.details["field"].as_str()), (status, Some(field)), "{error}");
        }
    }
}
