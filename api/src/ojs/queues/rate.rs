//! How fast jobs may start, as operators say it (OJS rate limiting §3).

use serde_json::{Map, Value};
use turnstone_domain::duration::parse_iso8601_ms;
use turnstone_domain::terms::{Rate, RateLimit};
use turnstone_ojs::OjsError;

/// No limit allows more than this; beyond it sums could overflow.
const MOST: i64 = 1_000_000_000;
/// The longest period: a hundred years.
const LONGEST_MS: i64 = 3_155_760_000_000;

/// Reads `{concurrency?, max_per_second? | rate? | limit?, period?, throttle?}`, where `rate` is `{limit, period}` or a
/// number per `period`. `path` stands before the names of members in errors.
pub(super) fn read(path: &str, sent: &Map<String, Value>) -> Result<RateLimit, OjsError> {
    let section = Section { path, sent };
    let period_ms = section.duration("period")?;
    let rate = match sent.get("rate") {
        Some(Value::Object(members)) => {
            let path = format!("{path}rate.");
            let inner = Section { path: &path, sent: members };
            let limit = inner.count("limit")?.ok_or_else(|| inner.wrong("limit", "is missing"))?;
            Some(Rate { limit, period_ms: inner.duration("period")?.or(period_ms).unwrap_or(1_000) })
        }
        _ => {
            let limit = section.count("rate")?.or(section.count("limit")?);
            limit.map(|limit| Rate { limit, period_ms: period_ms.unwrap_or(1_000) })
        }
    };
    let per_second = section.count("max_per_second")?.map(|limit| Rate { limit, period_ms: 1_000 });
    Ok(RateLimit {
        concurrency: section.count("concurrency")?,
        rate: per_second.or(rate),
        throttle_ms: section.duration("throttle")?,
        ..RateLimit::default()
    })
}

#[derive(Clone, Copy)]
struct Section<'a> {
    path: &'a str,
    sent: &'a Map<String, Value>,
}

impl<'a> Section<'a> {
    fn wrong(self, name: &str, why: &str) -> OjsError {
        OjsError::invalid_request(&format!("{}{name}", self.path), why)
    }

    fn given(self, name: &str) -> Option<&'a Value> {
        self.sent.get(name).filter(|value| !value.is_null())
    }

    fn count(self, name: &str) -> Result<Option<i64>, OjsError> {
        let Some(value) = self.given(name) else { return Ok(None) };
        let count = value.as_i64().filter(|count| (1..=MOST).contains(count));
        count.map(Some).ok_or_else(|| self.wrong(name, &format!("must be a whole number from 1 to {MOST}")))
    }

    fn duration(self, name: &str) -> Result<Option<i64>, OjsError> {
        let ms = match self.given(name) {
            None => return Ok(None),
            Some(Value::String(word)) => match word.as_str() {
                "second" => Some(1_000),
                "minute" => Some(60_000),
                "hour" => Some(3_600_000),
                "day" => Some(86_400_000),
                text => parse_iso8601_ms(text).ok().and_then(|ms| i64::try_from(ms).ok()),
            },
            Some(value) => value.as_i64().and_then(|seconds| seconds.checked_mul(1_000)),
        };
        let ms = ms.filter(|ms| (1..=LONGEST_MS).contains(ms));
        let why = "must be a duration such as PT30S, seconds, or one of second, minute, hour, day";
        ms.map(Some).ok_or_else(|| self.wrong(name, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn limit(body: Value) -> Result<RateLimit, OjsError> {
        read("", body.as_object().unwrap())
    }

    #[test]
    fn a_rate_has_several_forms() {
        let per = |limit, period_ms| Some(Rate { limit, period_ms });
        for (body, expected) in [
            (json!({"max_per_second": 5}), per(5, 1_000)),
            (json!({"rate": 2, "period": "minute"}), per(2, 60_000)),
            (json!({"limit": 2, "period": 90}), per(2, 90_000)),
            (json!({"rate": {"limit": 3, "period": "PT1H"}}), per(3, 3_600_000)),
            (json!({"concurrency": 3}), None),
        ] {
            assert_eq!(limit(body.clone()).unwrap().rate, expected, "{body}");
        }
        assert_eq!(limit(json!({"throttle": "PT0.5S"})).unwrap().throttle_ms, Some(500));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, field) in [
            (json!({"concurrency": 0}), "concurrency"),
            (json!({"rate": "fast"}), "rate"),
            (json!({"rate": {"period": "PT1S"}}), "rate.limit"),
            (json!({"rate": {"limit": 1, "period": "soon"}}), "rate.period"),
            (json!({"throttle": "PT0S"}), "throttle"),
            (json!({"max_per_second": 1.5}), "max_per_second"),
        ] {
            let error = limit(body).unwrap_err();
            assert_eq!((error.status, &error.details["field"]), (400, &json!(field)), "{error}");
        }
    }
}
