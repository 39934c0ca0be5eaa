//! The settings of a queue, read and checked member by member.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use turnstone_domain::RawObject;
use turnstone_domain::duration::Span;
use turnstone_domain::terms::RateLimit;
use turnstone_ojs::request::optional;
use turnstone_ojs::{Fields, OjsError, check_queue_name, read_limit};
use turnstone_store::{ConfigChange, QueueLimits, Retention};
use utoipa::ToSchema;

/// The members of `PUT …/config`.
const OPERATED: [&str; 4] = ["backpressure", "concurrency", "rate_limit", "retention"];
/// The further member of `PUT /queues/{name}`.
const POLICY: &str = "attest_policy";
/// No bound is greater; beyond it sums could overflow.
const MOST: i64 = 1_000_000_000_000;
/// Nothing is kept longer by its own rule: a hundred years.
const LONGEST_MS: i64 = 3_155_760_000_000;

/// The bounds and limits of a queue.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"backpressure": {"max_depth": 10000, "strategy": "reject", "warning_threshold": 0.8},
                          "concurrency": 20, "rate_limit": {"max_per_second": 50}}))]
pub(super) struct QueueConfig {
    backpressure: Option<Backpressure>,
    /// At most this many jobs are active.
    #[serde(default, deserialize_with = "whole::<_, 1>")]
    concurrency: Option<i64>,
    /// `max_per_second`, or `rate` and `period`, or `throttle`.
    #[schema(value_type = Option<Map<String, Value>>)]
    rate_limit: Option<RawObject>,
    /// How long ended jobs are kept, by state.
    retention: Option<QueueRetention>,
}

/// The attestation policy and the settings of a queue.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"name": "receipts", "attest_policy": {"required": true, "allowed_algorithms": ["ed25519"]}}))]
pub(super) struct QueueRequest {
    /// The queue, as in the path.
    name: Option<String>,
    /// The attestation that its jobs need: `required` and `allowed_algorithms`.
    #[schema(value_type = Option<Map<String, Value>>)]
    attest_policy: Option<Value>,
    backpressure: Option<Backpressure>,
    /// At most this many jobs are active.
    #[serde(default, deserialize_with = "whole::<_, 1>")]
    concurrency: Option<i64>,
    /// `max_per_second`, or `rate` and `period`, or `throttle`.
    #[schema(value_type = Option<Map<String, Value>>)]
    rate_limit: Option<RawObject>,
    /// How long ended jobs are kept, by state.
    retention: Option<QueueRetention>,
}

/// The bounds of a queue.
#[derive(Deserialize, ToSchema)]
pub(super) struct Backpressure {
    /// Available, scheduled and retryable jobs, at most.
    #[serde(default, deserialize_with = "whole::<_, 0>")]
    #[schema(minimum = 0)]
    max_depth: Option<i64>,
    /// Their payloads together, at most.
    #[serde(default, deserialize_with = "whole::<_, 0>")]
    #[schema(minimum = 0)]
    max_size_bytes: Option<i64>,
    /// `reject`, or `block`, which over HTTP is the same: the response contains the time of the next try.
    #[schema(value_type = Option<String>)]
    strategy: Option<Value>,
    /// The threshold from which responses contain the depth of the queue: a part of `max_depth` up to 1, or a number of
    /// jobs.
    #[schema(value_type = Option<f64>)]
    warning_threshold: Option<Value>,
}

/// How long ended jobs of a queue are kept: an ISO 8601 duration, or seconds.
#[derive(Deserialize, ToSchema)]
pub(super) struct QueueRetention {
    #[serde(default, deserialize_with = "kept")]
    #[schema(value_type = Option<Value>)]
    completed: Option<i64>,
    #[serde(default, deserialize_with = "kept")]
    #[schema(value_type = Option<Value>)]
    discarded: Option<i64>,
    #[serde(default, deserialize_with = "kept")]
    #[schema(value_type = Option<Value>)]
    cancelled: Option<i64>,
}

/// Refuses a name that no queue can have.
pub(super) fn queue_name(name: &str) -> Result<(), OjsError> {
    check_queue_name(name).map_err(|why| OjsError::invalid_request("the queue's name", why))
}

/// Returns settings that replace all others.
///
/// # Errors
/// 400 when no setting is named, which would remove all of them.
pub(super) fn replaced(sent: &Fields) -> Result<ConfigChange, OjsError> {
    if !OPERATED.iter().any(|name| sent.raw(name).is_some()) {
        let why = format!(
            "must name at least one of {}, because it replaces all of them; PUT /ojs/v1/queues/{{name}} changes one and keeps the others",
            OPERATED.join(", ")
        );
        return Err(OjsError::invalid_request("the body", why));
    }
    let mut members = Map::new();
    for name in OPERATED {
        members.insert(name.to_owned(), member(sent, name)?.unwrap_or_default());
    }
    let limits = Some(limits(Fields(RawObject::of(&members)).typed()?)?);
    Ok(ConfigChange { members, limits })
}

/// Returns settings of the queue `name` beside those that are not named.
///
/// # Errors
/// 400 for a member that is wrong.
pub(super) fn merged(
    sent: &Fields,
    name: &str,
    before: Option<&Map<String, Value>>,
) -> Result<ConfigChange, OjsError> {
    let mut members = Map::new();
    for name in OPERATED.into_iter().chain([POLICY]) {
        members.extend(member(sent, name)?.map(|value| (name.to_owned(), value)));
    }
    let mut all = before.cloned().unwrap_or_default();
    all.extend(members.clone());
    all.extend(member(sent, "name")?.map(|name| ("name".to_owned(), name)));
    let all: QueueRequest = Fields(RawObject::of(&all)).typed()?;
    if all.name.is_some_and(|other| other != name) {
        return Err(OjsError::invalid_request("name", "must be the queue that the path names"));
    }
    check_policy(all.attest_policy)?;
    let operated = OPERATED.iter().any(|name| members.contains_key(*name));
    let QueueRequest { backpressure, concurrency, rate_limit, retention, .. } = all;
    let config = QueueConfig { backpressure, concurrency, rate_limit, retention };
    let limits = if operated { Some(limits(config)?) } else { None };
    Ok(ConfigChange { members, limits })
}

/// Returns a member as it was sent; `null` is a value.
fn member(sent: &Fields, name: &str) -> Result<Option<Value>, OjsError> {
    let Some(raw) = sent.raw(name) else { return Ok(None) };
    let wrong = |_| OjsError::invalid_request(name, "holds a number that is out of range");
    raw.parse().map(Some).map_err(wrong)
}

fn check_policy(policy: Option<Value>) -> Result<(), OjsError> {
    let wrong = |field: &str, why: &str| OjsError::invalid_request(&format!("{POLICY}{field}"), why);
    let policy = match policy {
        None => return Ok(()),
        Some(Value::Object(policy)) => policy,
        Some(_) => return Err(wrong("", "must be an object")),
    };
    if policy.get("required").is_some_and(|value| !value.is_boolean()) {
        return Err(wrong(".required", "must be true or false"));
    }
    let texts = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    if policy.get("allowed_algorithms").is_some_and(|value| !texts(value)) {
        return Err(wrong(".allowed_algorithms", "must be a list of texts"));
    }
    Ok(())
}

/// Returns the limits of the settings.
fn limits(config: QueueConfig) -> Result<QueueLimits, OjsError> {
    let mut limits = QueueLimits { concurrency: config.concurrency, ..QueueLimits::default() };
    if let Some(bounds) = config.backpressure {
        if bounds.strategy.is_some_and(|word| word != "reject" && word != "block") {
            return Err(OjsError::invalid_request("backpressure.strategy", "must be reject or block"));
        }
        (limits.max_depth, limits.max_bytes) = (bounds.max_depth, bounds.max_size_bytes);
        limits.warn_at = bounds.warning_threshold.map(|at| warning(&at, bounds.max_depth)).transpose()?;
    }
    if let Some(sent) = config.rate_limit {
        let RateLimit { concurrency, rate, throttle_ms, .. } = read_limit("rate_limit", &sent)?;
        limits.concurrency = limits.concurrency.or(concurrency);
        (limits.rate, limits.throttle_ms) = (rate, throttle_ms);
    }
    if let Some(QueueRetention { completed, discarded, cancelled }) = config.retention {
        limits.retention =
            Retention { completed_ms: completed, discarded_ms: discarded, cancelled_ms: cancelled };
    }
    Ok(limits)
}

/// Reads how long ended jobs are kept, in milliseconds.
fn kept<'de, D: Deserializer<'de>>(member: D) -> Result<Option<i64>, D::Error> {
    optional(member, |value| {
        let ms = match value {
            Value::String(text) => Some(Span::parse(text)?.ms()),
            value => value.as_i64().and_then(|seconds| seconds.checked_mul(1_000)),
        };
        let ms = ms.filter(|ms| (1..=LONGEST_MS).contains(ms));
        ms.ok_or_else(|| "must be a duration such as P7D, or seconds, of at most a hundred years".to_owned())
    })
}

fn whole<'de, D: Deserializer<'de>, const LEAST: i64>(member: D) -> Result<Option<i64>, D::Error> {
    optional(member, |value| {
        let number = value.as_i64().filter(|number| (LEAST..=MOST).contains(number));
        number.ok_or_else(|| format!("must be a whole number from {LEAST} to {MOST}"))
    })
}

/// Reads a threshold: up to 1 it is a part of the bound, above that a number of jobs.
fn warning(threshold: &Value, max_depth: Option<i64>) -> Result<i64, OjsError> {
    let wrong = |why: &str| OjsError::invalid_request("backpressure.warning_threshold", why);
    let threshold = threshold.as_f64().filter(|number| (0.0..=1e12).contains(number));
    let threshold = threshold.ok_or_else(|| wrong("must be a number from 0 to 1, or a number of jobs"))?;
    let jobs = if threshold > 1.0 {
        threshold
    } else {
        let bound = max_depth.ok_or_else(|| wrong("up to 1 is a part of max_depth, which is missing"))?;
        #[expect(clippy::cast_precision_loss, reason = "bounds are far below 2^53")]
        let bound = bound as f64;
        (threshold * bound).ceil()
    };
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and 1e12")]
    let jobs = jobs as i64;
    Ok(jobs.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnstone_domain::terms::Rate;

    fn read(body: Value) -> Result<QueueLimits, OjsError> {
        replaced(&Fields::read(body.to_string().as_bytes()).unwrap()).map(|change| change.limits.unwrap())
    }

    #[test]
    fn what_is_not_named_is_not_limited() {
        assert_eq!(read(json!({"concurrency": null})).unwrap(), QueueLimits::default());
        for empty in [json!({}), json!({"other": 1})] {
            assert_eq!(read(empty).unwrap_err().status, 400);
        }
        let change = replaced(&Fields::read(br#"{"concurrency": 3, "other": 1}"#).unwrap()).unwrap();
        assert_eq!(change.members["backpressure"], Value::Null, "it is taken away");
        assert!(!change.members.contains_key("other"));
    }

    #[test]
    fn settings_are_understood() {
        let body = json!({
            "backpressure": {"max_depth": 10, "max_size_bytes": 99, "strategy": "reject", "warning_threshold": 0.75},
            "concurrency": 4, "rate_limit": {"max_per_second": 7}, "retention": {"completed": "P1D", "cancelled": 90},
        });
        let expected = QueueLimits {
            max_depth: Some(10),
            max_bytes: Some(99),
            warn_at: Some(8),
            concurrency: Some(4),
            rate: Some(Rate { limit: 7, period_ms: 1_000 }),
            throttle_ms: None,
            retention: Retention {
                completed_ms: Some(86_400_000),
                discarded_ms: None,
                cancelled_ms: Some(90_000),
            },
        };
        assert_eq!(read(body).unwrap(), expected);
        let absolute = json!({"backpressure": {"max_depth": 10, "warning_threshold": 5}});
        assert_eq!(read(absolute).unwrap().warn_at, Some(5));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, field) in [
            (json!({"concurrency": 0}), "concurrency"),
            (json!({"concurrency": "2"}), "concurrency"),
            (json!({"backpressure": 5}), "backpressure"),
            (json!({"backpressure": {"max_depth": -1}}), "backpressure.max_depth"),
            (json!({"backpressure": {"max_depth": 1.5}}), "backpressure.max_depth"),
            (json!({"backpressure": {"strategy": "panic"}}), "backpressure.strategy"),
            (json!({"backpressure": {"warning_threshold": 0.5}}), "backpressure.warning_threshold"),
            (json!({"backpressure": {"warning_threshold": -1}}), "backpressure.warning_threshold"),
            (json!({"rate_limit": {"max_per_second": 0}}), "rate_limit.max_per_second"),
            (json!({"retention": 7}), "retention"),
            (json!({"retention": {"completed": "soon"}}), "retention.completed"),
            (json!({"retention": {"discarded": 0}}), "retention.discarded"),
        ] {
            let error = read(body).unwrap_err();
            assert_eq!((error.status, &error.details["field"]), (400, &json!(field)), "{error}");
        }
    }

    #[test]
    fn a_policy_stands_beside_the_settings() {
        let sent = Fields::read(br#"{"attest_policy": {"required": true}}"#).unwrap();
        let change = merged(&sent, "q", None).unwrap();
        assert_eq!((change.members.len(), change.limits), (1, None));
        for wrong in
            [r#"{"name": "other"}"#, r#"{"attest_policy": 1}"#, r#"{"attest_policy": {"required": "yes"}}"#]
        {
            assert!(merged(&Fields::read(wrong.as_bytes()).unwrap(), "q", None).is_err(), "{wrong}");
        }
    }
}
