//! `override` of a request that lets a job run again (OJS dead letter §4.3).

use crate::options::JobOptions;
use crate::{Fields, OjsError};
use turnstone_domain::{Overrides, Timestamp};

/// The settings that can be overridden.
const KNOWN: [&str; 5] = ["queue", "priority", "timeout_ms", "retry", "retry_policy"];

/// Reads `override`, whose members have the same meaning as in `options` of an enqueue request.
///
/// # Errors
/// 400 or 422, as for the option; 400 for a member that cannot be overridden.
pub fn overrides(body: &Fields, now: Timestamp) -> Result<Overrides, OjsError> {
    let Some(sent) = body.object("override")? else { return Ok(Overrides::default()) };
    if let Some(name) = sent.names().find(|name| !KNOWN.contains(name)) {
        let shown: String = name.chars().take(60).collect();
        let why = format!("cannot change `{shown}`; it may have {}", KNOWN.join(", "));
        return Err(OjsError::invalid_request("override", why));
    }
    let read = JobOptions::read(&sent, now)?;
    let given = |name: &str| sent.given(name).is_some();
    Ok(Overrides {
        queue: given("queue").then_some(read.queue),
        priority: given("priority").then_some(read.priority),
        timeout_ms: read.timeout_ms,
        retry: (given("retry") || given("retry_policy")).then_some(read.retry),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Overrides, OjsError> {
        overrides(&Fields::read(body.as_bytes()).unwrap(), Timestamp(0))
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
