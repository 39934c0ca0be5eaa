//! `options` of an enqueue request: where, when and how often a job runs (OJS HTTP binding §5.1).

use crate::{OjsError, read, when};
use serde_json::{Map, Value, json};
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::{RawObject, Terms, Timestamp};

/// Fields of the envelope form (OJS core §3) that mean the same as the option of that name.
pub(crate) const ALSO_AT_THE_TOP: [&str; 10] = [
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
];

/// What the options mean, with every default filled in.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct JobOptions {
    pub(crate) queue: String,
    pub(crate) priority: i64,
    pub(crate) run_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) timeout_ms: Option<i64>,
    pub(crate) retry: RetryPolicy,
    pub(crate) terms: Terms,
}

impl JobOptions {
    pub(crate) fn read(sent: &RawObject, now: Timestamp) -> Result<Self, OjsError> {
        let mut options = Map::new();
        for name in ALSO_AT_THE_TOP {
            let Some(value) = sent.given(name) else { continue };
            let wrong = |why| OjsError::invalid_request(&format!("options.{name}"), why);
            options.insert(name.to_owned(), read::value(value).map_err(wrong)?);
        }
        let wrong = |field: &'static str| {
            move |why: String| OjsError::invalid_request(&format!("options.{field}"), why)
        };
        let given = |field: &str| options.get(field).filter(|value| !value.is_null());
        let time = |field: &'static str| match given(field) {
            None => Ok(None),
            Some(value) => {
                read::text(value).and_then(|text| when::read(text, now)).map(Some).map_err(wrong(field))
            }
        };
        let queue = given("queue").map_or(Ok("default"), queue_name).map_err(wrong("queue"))?;
        let priority = given("priority").map_or(Ok(0), priority).map_err(wrong("priority"))?;
        let timeout = given("timeout_ms").map(|value| read::integer_from(value, 1)).transpose();
        if let Some(tags) = given("tags") {
            read::texts(tags).map_err(wrong("tags"))?;
        }
        let (delay_until, scheduled_at) = (time("delay_until")?, time("scheduled_at")?);
        Ok(Self {
            queue: queue.to_owned(),
            priority,
            run_at: scheduled_at.or(delay_until).unwrap_or(now).max(now),
            expires_at: time("expires_at")?,
            timeout_ms: timeout.map_err(wrong("timeout_ms"))?,
            retry: match given("retry").or_else(|| given("retry_policy")) {
                Some(policy) => retry(policy)?,
                None => RetryPolicy::default(),
            },
            terms: Terms::default(),
        })
    }
}

fn queue_name(value: &Value) -> Result<&str, String> {
    let name = read::filled_text(value)?;
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if name.len() > 128
        || !name.starts_with(plain)
        || !name.chars().all(|c| plain(c) || matches!(c, '-' | '.'))
    {
        let shown = read::shortened(name, 60);
        return Err(format!(
            "`{shown}` must be 1 to 128 characters of a-z, 0-9, `-`, `.`, and begin with a letter or digit"
        ));
    }
    Ok(name)
}

fn priority(value: &Value) -> Result<i64, String> {
    match read::integer(value)? {
        number @ -100..=100 => Ok(number),
        number => Err(format!("must be from -100 to 100, not {number}")),
    }
}

/// Reads a policy field by field, so that an error names its field (OJS retry §3.1). Unknown fields are tolerated.
fn retry(policy: &Value) -> Result<RetryPolicy, OjsError> {
    let wrong = |field: &str, why: String| {
        let field = format!("options.retry.{field}");
        OjsError::validation(&field, format!("{field}: {}", read::shortened(&why, 300)))
    };
    let mut fields = read::object(policy)
        .map_err(|why| OjsError::validation("options.retry", format!("options.retry {why}")))?
        .clone();
    if fields.contains_key("backoff_strategy") {
        fields.remove("backoff_type");
    }
    for (name, value) in &fields {
        serde_json::from_value::<RetryPolicy>(json!({ name.as_str(): value }))
            .map_err(|e| wrong(name, e.to_string()))?;
    }
    let policy: RetryPolicy =
        serde_json::from_value(Value::Object(fields)).map_err(|e| wrong("", e.to_string()))?;
    policy.check().map_err(|why| OjsError::validation("options.retry", format!("options.retry: {why}")))?;
    Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;
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
            (json!({"timeout_ms": 0}), "timeout_ms"),
            (json!({"timeout_ms": "1s"}), "timeout_ms"),
            (json!({"timeout_ms": u64::MAX}), "timeout_ms"),
            (json!({"delay_until": "2026-01-01T00:00:00"}), "delay_until"),
            (json!({"scheduled_at": 5}), "scheduled_at"),
            (json!({"expires_at": "soon"}), "expires_at"),
            (json!({"tags": "x"}), "tags"),
        ] {
            let error = read(options).unwrap_err();
            assert_eq!((error.status, error.code), (400, "invalid_request"), "{error}");
            assert_eq!(error.details["field"], format!("options.{field}"), "{error}");
        }
    }
}
