//! The settings of a queue, read and checked member by member.

use serde_json::{Map, Value};
use turnstone_domain::RawObject;
use turnstone_domain::duration::parse_iso8601_ms;
use turnstone_domain::terms::RateLimit;
use turnstone_ojs::{Fields, OjsError, check_queue_name, read_limit};
use turnstone_store::{ConfigChange, QueueLimits, Retention};

/// The members of `PUT …/config`.
const OPERATED: [&str; 4] = ["backpressure", "concurrency", "rate_limit", "retention"];
/// The further member of `PUT /queues/{name}`.
const POLICY: &str = "attest_policy";
/// No bound is greater; beyond it sums could overflow.
const MOST: i64 = 1_000_000_000_000;
/// Nothing is kept longer by its own rule: a hundred years.
const LONGEST_MS: i64 = 3_155_760_000_000;

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
    let limits = Some(limits(&members)?);
    Ok(ConfigChange { members, limits })
}

/// Settings beside those that are not named.
pub(super) fn merged(sent: &Fields, before: Option<&Map<String, Value>>) -> Result<ConfigChange, OjsError> {
    let mut members = Map::new();
    for name in OPERATED.into_iter().chain([POLICY]) {
        members.extend(member(sent, name)?.map(|value| (name.to_owned(), value)));
    }
    check_policy(members.get(POLICY).unwrap_or(&Value::Null))?;
    let operated = OPERATED.iter().any(|name| members.contains_key(*name));
    let mut all = before.cloned().unwrap_or_default();
    all.extend(members.clone());
    let limits = if operated { Some(limits(&all)?) } else { None };
    Ok(ConfigChange { members, limits })
}

/// Returns a member as it was sent; `null` is a value.
fn member(sent: &Fields, name: &str) -> Result<Option<Value>, OjsError> {
    let Some(raw) = sent.raw(name) else { return Ok(None) };
    let wrong = |_| OjsError::invalid_request(name, "holds a number that is out of range");
    raw.parse().map(Some).map_err(wrong)
}

fn check_policy(policy: &Value) -> Result<(), OjsError> {
    let wrong = |field: &str, why: &str| OjsError::invalid_request(&format!("{POLICY}{field}"), why);
    let policy = match policy {
        Value::Null => return Ok(()),
        Value::Object(policy) => policy,
        _ => return Err(wrong("", "must be an object")),
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
fn limits(settings: &Map<String, Value>) -> Result<QueueLimits, OjsError> {
    let mut limits =
        QueueLimits { concurrency: number(settings, "", "concurrency", 1)?, ..QueueLimits::default() };
    if let Some(bounds) = object(settings, "backpressure")? {
        limits.max_depth = number(bounds, "backpressure.", "max_depth", 0)?;
        limits.max_bytes = number(bounds, "backpressure.", "max_size_bytes", 0)?;
        limits.warn_at = warning(bounds, limits.max_depth)?;
        check_strategy(bounds)?;
    }
    if let Some(sent) = object(settings, "rate_limit")? {
        let RateLimit { concurrency, rate, throttle_ms, .. } =
            read_limit("rate_limit", &RawObject::of(sent))?;
        limits.concurrency = limits.concurrency.or(concurrency);
        (limits.rate, limits.throttle_ms) = (rate, throttle_ms);
    }
    if let Some(sent) = object(settings, "retention")? {
        limits.retention = Retention {
            completed_ms: kept(sent, "completed")?,
            discarded_ms: kept(sent, "discarded")?,
            cancelled_ms: kept(sent, "cancelled")?,
        };
    }
    Ok(limits)
}

/// Reads how long ended jobs are kept: an ISO 8601 duration, or seconds.
fn kept(retention: &Map<String, Value>, name: &str) -> Result<Option<i64>, OjsError> {
    let ms = match retention.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => parse_iso8601_ms(text).ok().and_then(|ms| i64::try_from(ms).ok()),
        Some(value) => value.as_i64().and_then(|seconds| seconds.checked_mul(1_000)),
    };
    match ms.filter(|ms| (1..=LONGEST_MS).contains(ms)) {
        Some(ms) => Ok(Some(ms)),
        None => {
            let why = "must be a duration such as P7D, or seconds, of at most a hundred years";
            Err(OjsError::invalid_request(&format!("retention.{name}"), why))
        }
    }
}

fn object<'a>(
    settings: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a Map<String, Value>>, OjsError> {
    match settings.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(members)) => Ok(Some(members)),
        Some(_) => Err(OjsError::invalid_request(name, "must be an object")),
    }
}

fn number(from: &Map<String, Value>, path: &str, name: &str, least: i64) -> Result<Option<i64>, OjsError> {
    let Some(value) = from.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
    match value.as_i64().filter(|number| (least..=MOST).contains(number)) {
        Some(number) => Ok(Some(number)),
        None => {
            let why = format!("must be a whole number from {least} to {MOST}");
            Err(OjsError::invalid_request(&format!("{path}{name}"), why))
        }
    }
}

/// Reads a threshold: up to 1 it is a part of the bound, above that a number of jobs.
fn warning(bounds: &Map<String, Value>, max_depth: Option<i64>) -> Result<Option<i64>, OjsError> {
    const NAME: &str = "backpressure.warning_threshold";
    let Some(value) = bounds.get("warning_threshold").filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let wrong = |why: &str| OjsError::invalid_request(NAME, why);
    let threshold = value.as_f64().filter(|number| (0.0..=1e12).contains(number));
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
    Ok(Some(jobs.max(1)))
}

fn check_strategy(bounds: &Map<String, Value>) -> Result<(), OjsError> {
    match bounds.get("strategy") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(word)) if matches!(word.as_str(), "reject" | "block") => Ok(()),
        Some(_) => Err(OjsError::invalid_request("backpressure.strategy", "must be reject or block")),
    }
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
        let change = merged(&sent, None).unwrap();
        assert_eq!((change.members.len(), change.limits), (1, None));
        for wrong in [r#"{"attest_policy": 1}"#, r#"{"attest_policy": {"required": "yes"}}"#] {
            assert!(merged(&Fields::read(wrong.as_bytes()).unwrap(), None).is_err(), "{wrong}");
        }
    }
}
