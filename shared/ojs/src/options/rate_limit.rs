//! Limits (OJS rate limiting §3): how fast jobs that share a key, or a queue, may start. A job sets it in
//! `options.rate_limit`, an operator on a queue or a key.

use super::section::{Section, duration};
use crate::{Fields, OjsError, read};
use serde::Deserialize;
use serde_json::Value;
use turnstone_domain::terms::{OnLimit, Rate, RateLimit};
use turnstone_domain::{RawJson, RawObject};
use utoipa::ToSchema;

/// No limit allows more than this; beyond it sums could overflow.
const MOST: i64 = 1_000_000_000;
/// A key has at most this many characters.
const KEY_CHARACTERS: usize = 256;
const SECOND_MS: i64 = 1000;
/// The members of a limit.
const MEMBERS: [&str; 8] =
    ["key", "concurrency", "max_per_second", "rate", "limit", "period", "throttle", "on_limit"];

/// A limit.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"concurrency": 5, "rate": {"limit": 100, "period": "PT1M"}}))]
pub struct LimitRequest {
    #[schema(ignore)]
    key: Option<RawJson>,
    /// At most this many are active.
    #[schema(value_type = Option<i64>)]
    concurrency: Option<RawJson>,
    #[schema(ignore)]
    max_per_second: Option<RawJson>,
    /// `limit` per `period`, an ISO 8601 duration.
    #[schema(value_type = Option<Map<String, Value>>)]
    rate: Option<RawJson>,
    #[schema(ignore)]
    limit: Option<RawJson>,
    #[schema(ignore)]
    period: Option<RawJson>,
    /// The least time between two starts, an ISO 8601 duration.
    #[schema(value_type = Option<String>)]
    throttle: Option<RawJson>,
    #[schema(ignore)]
    on_limit: Option<RawJson>,
}

/// Reads the limit of a job: `{max_per_second}` for its queue, or with a `key` what [`read_limit`] reads.
pub(super) fn rate_limit(members: &RawObject) -> Result<RateLimit, OjsError> {
    const PATH: &str = "options.rate_limit";
    let limit = read_limit(PATH, members)?;
    // A job that names a key and no values takes the key's limit as it is.
    if limit.key.is_none()
        && limit.concurrency.is_none()
        && limit.rate.is_none()
        && limit.throttle_ms.is_none()
    {
        let why = "limits nothing; give a key, or max_per_second, concurrency, rate or throttle";
        return Err(OjsError::invalid_request(PATH, why));
    }
    Ok(limit)
}

/// Reads `{key?, concurrency?, max_per_second? | rate? | limit?, period?, throttle?, on_limit?}`. `rate` is
/// `{limit, period}` or a number per `period`. `throttle` is `{limit, period}` or the time between two starts. A
/// concurrency of 0 lets nothing start. `path` precedes the names of members in errors; it may be empty.
///
/// # Errors
/// 400 for a member that is wrong.
pub fn read_limit(path: &str, members: &RawObject) -> Result<RateLimit, OjsError> {
    let (at, sent) = (Section { path, members }, Fields(members.clone()).typed::<LimitRequest>()?);
    at.only(&MEMBERS)?;
    let concurrency = |value: &Value| read::integer_between(value, 0, MOST);
    Ok(RateLimit {
        key: at.read("key", sent.key.as_ref(), key)?,
        concurrency: at.read("concurrency", sent.concurrency.as_ref(), concurrency)?,
        rate: rate(at, &sent)?,
        throttle_ms: throttle(at, sent.throttle.as_ref())?,
        on_limit: at.read("on_limit", sent.on_limit.as_ref(), on_limit)?.unwrap_or_default(),
    })
}

fn count(value: &Value) -> Result<i64, String> {
    read::integer_between(value, 1, MOST)
}

fn rate(at: Section<'_>, sent: &LimitRequest) -> Result<Option<Rate>, OjsError> {
    let period_ms = at.read("period", sent.period.as_ref(), period)?;
    if let Some(limit) = at.read("max_per_second", sent.max_per_second.as_ref(), count)? {
        return Ok(Some(Rate { limit, period_ms: SECOND_MS }));
    }
    if sent.rate.as_ref().is_some_and(RawJson::is_object) {
        return per_period(at, "rate", period_ms);
    }
    let rate = at.read("rate", sent.rate.as_ref(), count)?;
    let limit = rate.or(at.read("limit", sent.limit.as_ref(), count)?);
    Ok(limit.map(|limit| Rate { limit, period_ms: period_ms.unwrap_or(SECOND_MS) }))
}

/// Reads the time between two starts: as it is, or that of `limit` starts in a `period`.
fn throttle(at: Section<'_>, sent: Option<&RawJson>) -> Result<Option<i64>, OjsError> {
    if !sent.is_some_and(RawJson::is_object) {
        return at.read("throttle", sent, period);
    }
    let rate = per_period(at, "throttle", None)?;
    Ok(rate.map(|rate| (rate.period_ms / rate.limit).max(1)))
}

/// `{limit, period}` of a member.
fn per_period(at: Section<'_>, name: &str, outer_ms: Option<i64>) -> Result<Option<Rate>, OjsError> {
    let Some(members) = at.object(name)? else { return Ok(None) };
    let inner_path = at.path_of(name);
    let inner = Section { path: &inner_path, members: &members };
    inner.only(&["limit", "period"])?;
    let Some(limit) = inner.given("limit", count)? else { return Err(inner.wrong("limit", "is missing")) };
    let period_ms = inner.given("period", period)?.or(outer_ms).unwrap_or(SECOND_MS);
    Ok(Some(Rate { limit, period_ms }))
}

fn key(value: &Value) -> Result<String, String> {
    let key = read::filled_text(value)?;
    if key.chars().count() > KEY_CHARACTERS || key.chars().any(char::is_control) {
        return Err(format!("must have 1 to {KEY_CHARACTERS} characters, none of them a control character"));
    }
    Ok(key.to_owned())
}

/// Reads a period: a word, an ISO 8601 duration, or seconds.
fn period(value: &Value) -> Result<i64, String> {
    Ok(match value.as_str() {
        Some("second") => SECOND_MS,
        Some("minute") => 60 * SECOND_MS,
        Some("hour") => 3_600 * SECOND_MS,
        Some("day") => 86_400 * SECOND_MS,
        _ => duration(value)
            .map_err(|why| format!("must be second, minute, hour, day or a duration: {why}"))?,
    })
}

fn on_limit(value: &Value) -> Result<OnLimit, String> {
    match read::text(value)? {
        "wait" => Ok(OnLimit::Wait),
        "reschedule" => Ok(OnLimit::Reschedule),
        "drop" => Ok(OnLimit::Drop),
        other => Err(format!("must be wait, reschedule or drop, not `{}`", read::shortened(other, 40))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(limit: Value) -> Result<RateLimit, OjsError> {
        rate_limit(&RawObject::of(limit.as_object().unwrap()))
    }

    #[test]
    fn every_form_of_a_limit() {
        let rate = |limit, period_ms| Some(Rate { limit, period_ms });
        assert_eq!(
            read(json!({"max_per_second": 5})).unwrap(),
            RateLimit { rate: rate(5, 1000), ..RateLimit::default() }
        );
        let keyed = RateLimit { key: Some("k".into()), ..RateLimit::default() };
        for (sent, limit) in [
            (json!({"key": "k", "concurrency": 2}), RateLimit { concurrency: Some(2), ..keyed.clone() }),
            (
                json!({"key": "k", "rate": {"limit": 10, "period": "PT1M"}}),
                RateLimit { rate: rate(10, 60_000), ..keyed.clone() },
            ),
            (
                json!({"key": "k", "rate": 1, "period": "hour"}),
                RateLimit { rate: rate(1, 3_600_000), ..keyed.clone() },
            ),
            (json!({"key": "k"}), keyed.clone()),
            (json!({"key": "k", "concurrency": 0}), RateLimit { concurrency: Some(0), ..keyed.clone() }),
            (
                json!({"key": "k", "throttle": {"limit": 10, "period": "PT1S"}}),
                RateLimit { throttle_ms: Some(100), ..keyed.clone() },
            ),
            (
                json!({"key": "k", "limit": 2, "period": 90}),
                RateLimit { rate: rate(2, 90_000), ..keyed.clone() },
            ),
            (json!({"key": "k", "rate": {"limit": 3}}), RateLimit { rate: rate(3, 1000), ..keyed.clone() }),
            (
                json!({"key": "k", "throttle": "PT0.2S", "on_limit": "drop"}),
                RateLimit { throttle_ms: Some(200), on_limit: OnLimit::Drop, ..keyed.clone() },
            ),
        ] {
            assert_eq!(read(sent.clone()).unwrap(), limit, "{sent}");
        }
    }

    #[test]
    fn wrong_limits_are_named() {
        for (sent, field) in [
            (json!({}), ""),
            (json!({"max_per_second": 0}), ".max_per_second"),
            (json!({"max_per_second": "5"}), ".max_per_second"),
            (json!({"key": "", "concurrency": 1}), ".key"),
            (json!({"key": 5, "concurrency": 1}), ".key"),
            (json!({"key": "k", "concurrency": -1}), ".concurrency"),
            (json!({"key": "k", "rate": "fast"}), ".rate"),
            (json!({"key": "k", "rate": {}}), ".rate.limit"),
            (json!({"key": "k", "rate": {"limit": 0}}), ".rate.limit"),
            (json!({"key": "k", "rate": {"limit": 1, "period": "often"}}), ".rate.period"),
            (json!({"key": "k", "rate": 1, "period": 0}), ".period"),
            (json!({"key": "k", "throttle": "PT0S"}), ".throttle"),
            (json!({"key": "k", "concurrency": 1, "on_limit": "explode"}), ".on_limit"),
        ] {
            let error = read(sent).unwrap_err();
            assert_eq!(error.details["field"], format!("options.rate_limit{field}"), "{error}");
            assert_eq!((error.status, error.code), (400, "invalid_request"));
        }
    }

    #[test]
    fn an_operator_without_a_key_receives_the_path() {
        let of = |limit: Value| read_limit("", &RawObject::of(limit.as_object().unwrap()));
        assert_eq!(of(json!({})).unwrap(), RateLimit::default());
        assert_eq!(
            of(json!({"rate": 2, "period": "minute"})).unwrap().rate,
            Some(Rate { limit: 2, period_ms: 60_000 })
        );
        for (limit, field) in [
            (json!({"concurrency": -1}), "concurrency"),
            (json!({"throttle": {"period": "PT1S"}}), "throttle.limit"),
            (json!({"rate": {"period": "PT1S"}}), "rate.limit"),
            (json!({"rate": {"limit": 1, "period": "soon"}}), "rate.period"),
            (json!({"throttle": "PT0S"}), "throttle"),
        ] {
            let error = of(limit).unwrap_err();
            assert_eq!((error.status, &error.details["field"]), (400, &json!(field)), "{error}");
        }
    }
}
