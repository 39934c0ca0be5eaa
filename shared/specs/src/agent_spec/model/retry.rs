//! Retry policies of requests.

use serde_json::Value;
use std::collections::BTreeMap;

/// The retries of requests. The default is the one of the specification.
#[derive(Clone, PartialEq, Debug)]
pub struct RetryPolicy {
    /// Tries after the first one.
    pub max_attempts: u64,
    /// Seconds until a request is given up.
    pub request_timeout: Option<f64>,
    /// Seconds before the second try.
    pub initial_retry_delay: f64,
    /// The most seconds between two tries.
    pub max_retry_delay: f64,
    /// By how much delays grow.
    pub backoff_factor: f64,
    /// The jitter of delays; `None` for none.
    pub jitter: Option<Jitter>,
    /// Retries every status of 500 and more.
    pub service_error_retry_on_any_5xx: bool,
    /// More statuses that are tried again, each with the error codes that it is limited to.
    pub recoverable_statuses: BTreeMap<String, Vec<String>>,
}

/// The jitter of delays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Jitter {
    /// Half of the delay, and a random part of the other half.
    Equal,
    /// A random part of the delay.
    Full,
    /// `Equal` when the client is at fault, `Full` otherwise.
    FullAndEqualForThrottle,
    /// The delay and up to a second.
    Decorrelated,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 2,
            request_timeout: None,
            initial_retry_delay: 1.0,
            max_retry_delay: 8.0,
            backoff_factor: 2.0,
            jitter: Some(Jitter::FullAndEqualForThrottle),
            service_error_retry_on_any_5xx: true,
            recoverable_statuses: ["409", "429"].map(|status| (status.to_owned(), Vec::new())).into(),
        }
    }
}

/// Statuses that are never tried again.
const NEVER: [u16; 5] = [400, 401, 403, 422, 501];

impl RetryPolicy {
    /// Returns true if a request with this answer is sent again: its status, and the error codes that its body names.
    #[must_use]
    pub fn covers(&self, status: u16, codes: &[&str]) -> bool {
        let named = self.recoverable_statuses.get(&status.to_string());
        let named = named.is_some_and(|only| {
            only.is_empty() || codes.iter().any(|code| only.iter().any(|own| own == code))
        });
        !NEVER.contains(&status) && (named || (self.service_error_retry_on_any_5xx && status >= 500))
    }

    /// Reads a policy whose shape was checked.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let map = value.as_object()?;
        let otherwise = Self::default();
        let number = |key: &str, otherwise: f64| map.get(key).and_then(Value::as_f64).unwrap_or(otherwise);
        let jitter = match map.get("jitter") {
            None => otherwise.jitter,
            Some(Value::String(word)) => Some(match word.as_str() {
                "equal" => Jitter::Equal,
                "full" => Jitter::Full,
                "decorrelated" => Jitter::Decorrelated,
                _ => Jitter::FullAndEqualForThrottle,
            }),
            Some(_) => None,
        };
        let codes = |codes: &Value| {
            codes.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let statuses = map.get("recoverable_statuses").and_then(Value::as_object);
        Some(Self {
            max_attempts: map.get("max_attempts").and_then(Value::as_u64).unwrap_or(otherwise.max_attempts),
            request_timeout: map.get("request_timeout").and_then(Value::as_f64),
            initial_retry_delay: number("initial_retry_delay", otherwise.initial_retry_delay),
            max_retry_delay: number("max_retry_delay", otherwise.max_retry_delay),
            backoff_factor: number("backoff_factor", otherwise.backoff_factor),
            jitter,
            service_error_retry_on_any_5xx: map
                .get("service_error_retry_on_any_5xx")
                .and_then(Value::as_bool)
                .unwrap_or(otherwise.service_error_retry_on_any_5xx),
            recoverable_statuses: statuses.map_or(otherwise.recoverable_statuses, |statuses| {
                statuses.iter().map(|(status, list)| (status.clone(), codes(list))).collect()
            }),
        })
    }
}
