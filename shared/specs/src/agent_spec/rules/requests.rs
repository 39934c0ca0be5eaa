//! Requests: headers, retries, and fields that accept a text or a list of texts.

use crate::agent_spec::component::{Component, Held};
use crate::problem::Problems;
use crate::shape::shortened;
use serde_json::Value;

/// A header is given once: in the open, or as a secret (AS-54).
pub(super) fn check_headers(component: &Component, problems: &mut Problems) {
    let Some(secret) = component.secret("sensitive_headers").and_then(|secret| secret.reveal()) else {
        return;
    };
    let headers = component.value("headers");
    for (name, _) in headers.as_object().into_iter().flatten() {
        if secret.get(name).is_some() {
            let message = format!(
                "{}: the header `{}` is in `sensitive_headers` too",
                component.shown(),
                shortened(name)
            );
            problems.error(component.place("headers"), "AS-54", message);
        }
    }
}

/// Delays grow up to the largest one, not down to it (AS-56).
pub(super) fn check_retries(component: &Component, problems: &mut Problems) {
    let Some(Held::Plain(policy)) = component.held.get("retry_policy") else { return };
    let seconds = |key: &str, default: f64| policy.get(key).and_then(Value::as_f64).unwrap_or(default);
    if seconds("max_retry_delay", 8.0) < seconds("initial_retry_delay", 1.0) {
        let message = format!("{}: `max_retry_delay` is less than `initial_retry_delay`", component.shown());
        problems.error(component.place("retry_policy"), "AS-56", message);
    }
}

/// `scopes` and `executor_name` are a text or a list of texts (AS-06).
pub(super) fn check_texts(component: &Component, problems: &mut Problems) {
    for field in ["scopes", "executor_name"] {
        let is_text = match component.value(field) {
            Value::Null | Value::String(_) => true,
            Value::Array(items) => items.iter().all(Value::is_string),
            _ => false,
        };
        if !is_text {
            let message = format!("`{field}` of {} must be a text or a list of texts", component.shown());
            problems.error(component.place(field), "AS-06", message);
        }
    }
}
