//! `override` of a request that lets a job run again (OJS dead letter §4.3).

use crate::options::JobOptions;
use crate::request::read_if_any;
use crate::{Fields, OjsError};
use serde::Deserialize;
use turnstone_domain::{Overrides, RawJson, RawObject, Timestamp};
use utoipa::ToSchema;

/// The settings that can be overridden.
const KNOWN: [&str; 5] = ["queue", "priority", "timeout_ms", "retry", "retry_policy"];

/// A job that is to run again.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"override": {"queue": "mail-slow", "priority": 10}}))]
pub struct RetryRequest {
    /// Options that were overridden.
    #[serde(rename = "override")]
    #[schema(value_type = Option<RetryOverride>)]
    anew: Option<RawObject>,
}

/// Options that are not given stay as they were.
#[derive(Deserialize, ToSchema)]
pub struct RetryOverride {
    #[schema(value_type = Option<String>)]
    queue: Option<RawJson>,
    #[schema(value_type = Option<i64>, minimum = -100, maximum = 100)]
    priority: Option<RawJson>,
    #[schema(value_type = Option<i64>, minimum = 1)]
    timeout_ms: Option<RawJson>,
    /// A retry policy, over the defaults.
    #[schema(value_type = Option<Map<String, Value>>)]
    retry: Option<RawJson>,
    #[schema(ignore)]
    retry_policy: Option<RawJson>,
}

/// Reads `override`, whose members have the same meaning as in `options` of an enqueue request.
///
/// # Errors
/// 400 or 422, as for the option; 400 for a member that cannot be overridden.
pub fn overrides(body: &[u8], now: Timestamp) -> Result<Overrides, OjsError> {
    let RetryRequest { anew: Some(sent) } = read_if_any(body)? else { return Ok(Overrides::default()) };
    if let Some(name) = sent.names().find(|name| !KNOWN.contains(name)) {
        let shown: String = name.chars().take(60).collect();
        let why = format!("cannot change `{shown}`; it may have {}", KNOWN.join(", "));
        return Err(OjsError::invalid_request("override", why));
    }
    let read = JobOptions::read(&sent, now).map_err(|error| error.of_member("options.", "override."))?;
    let given: RetryOverride = Fields(sent).typed()?;
    Ok(Overrides {
        queue: given.queue.map(|_| read.queue),
        priority: given.priority.map(|_| read.priority),
        timeout_ms: given.timeout_ms.and(read.timeout_ms),
        retry: given.retry.or(given.retry_policy).map(|_| read.retry),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Overrides, OjsError> {
        overrides(body.as_bytes(), Timestamp(0))
    }

    #[test]
    fn what_is_not_given_stays() {
        assert_eq!(read("{}"), Ok(Overrides::default()));
        assert_eq!(read(r#"{"override":{"queue":null}}"#), Ok(Overrides::default()));
        let read = read(r#"{"override":{"queue":"slow","priority":-3,"retry":{"max_attempts":9}}}"#).unwrap();
        assert_eq!((read.queue.as_deref(), read.priority, read.timeout_ms), (Some("slow"), Some(-3), None));
        assert_eq!(read.retry.map(|policy| policy.max_attempts), Some(9));
    }

    #[test]
    fn what_cannot_be_given_anew_is_refused() {
        for (body, status) in [
            (r#"{"override":{"args":[]}}"#, 400),
            (r#"{"override":[]}"#, 400),
            (r#"{"override":{"priority":101}}"#, 400),
            (r#"{"override":{"retry":{"max_attempts":-1}}}"#, 422),
        ] {
            assert_eq!(read(body).unwrap_err().status, status, "{body}");
        }
    }
}
