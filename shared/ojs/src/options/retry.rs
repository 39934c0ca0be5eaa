//! `options.retry` (OJS retry §3).

use super::section::misspelling;
use crate::{OjsError, read};
use serde_json::{Map, Value, json};
use turnstone_domain::RawJson;
use turnstone_domain::retry::RetryPolicy;

const FIELDS: [&str; 9] = [
    "max_attempts",
    "initial_interval",
    "backoff_coefficient",
    "max_interval",
    "backoff_strategy",
    "backoff_type",
    "jitter",
    "non_retryable_errors",
    "on_exhaustion",
];

/// The fields that set neither how often nor when a job is tried. A policy with these alone is not stated.
const NOT_STATING: [&str; 2] = ["non_retryable_errors", "on_exhaustion"];

/// Reads a policy field by field, so that an error names its field (OJS retry §3.1). Unknown fields are tolerated,
/// unless they are a slip of a known one: that would leave the default in force silently.
pub(super) fn retry(policy: &RawJson) -> Result<RetryPolicy, OjsError> {
    let whole = |why: String| OjsError::validation("options.retry", format!("options.retry {why}"));
    let wrong = |field: &str, why: String| {
        let field = format!("options.retry.{field}");
        OjsError::validation(&field, format!("{field}: {}", read::shortened(&why, 300)))
    };
    let sent = read::raw_object(policy).map_err(whole)?;
    for name in sent.names() {
        if let Some(meant) = misspelling(name, &FIELDS) {
            return Err(wrong(name, format!("is no field of a retry policy; did you mean `{meant}`?")));
        }
    }
    let mut fields = Map::new();
    for name in FIELDS {
        let Some(value) = sent.get(name) else { continue };
        if name == "backoff_type" && sent.contains("backoff_strategy") {
            continue;
        }
        let value = read::value(value).map_err(|why| wrong(name, why))?;
        serde_json::from_value::<RetryPolicy>(json!({ name: &value }))
            .map_err(|e| wrong(name, e.to_string()))?;
        fields.insert(name.to_owned(), value);
    }
    let stated = fields.keys().any(|name| !NOT_STATING.contains(&name.as_str()));
    let policy: RetryPolicy =
        serde_json::from_value(Value::Object(fields)).map_err(|e| wrong("", e.to_string()))?;
    policy.check().map_err(|(field, why)| wrong(field, why))?;
    Ok(RetryPolicy { stated, ..policy })
}
