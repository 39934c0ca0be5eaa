//! Failures in the words of a worker over HTTP (OJS HTTP binding §5.6).

use crate::JobError;
use crate::error::FailureKind;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Codes that only mean that the handler failed.
const VAGUE: &[&str] = &["handler_error", "error", "unknown", "unknown_error"];

/// The words of the worker.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Reported {
    /// Its code.
    pub code: String,
    /// The class of the error: the worker's own, or a guess from its message.
    pub error_type: String,
    /// True if the class is a guess. Guesses are shown, and decide nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guessed: bool,
}

/// A code by which a handler determines the fate of its job (OJS retry §8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandlerWord {
    /// Try again, even if `non_retryable_errors` lists the error, as long as attempts are left.
    Retry,
    /// End it, and do not keep it as a dead letter.
    Discard,
    /// End it, and keep it as a dead letter.
    DeadLetter,
    /// End it as the policy does for jobs that have used up their attempts.
    Fail,
}

impl HandlerWord {
    /// Reads a code; any other than these four is just a code.
    #[must_use]
    pub fn parse(code: &str) -> Option<Self> {
        match code {
            "RETRY" => Some(Self::Retry),
            "DISCARD" => Some(Self::Discard),
            "DEAD_LETTER" => Some(Self::DeadLetter),
            "FAIL" => Some(Self::Fail),
            _ => None,
        }
    }
}

impl JobError {
    /// Returns the error of a failure that a worker reported. Its class is `named`, else `details.error_class`. Else it
    /// is a guess if the code is vague, or the code itself.
    #[must_use]
    pub fn reported(
        code: &str,
        message: impl Into<String>,
        retryable: bool,
        named: Option<&str>,
        details: Map<String, Value>,
    ) -> Self {
        let message = message.into();
        let class = named.or_else(|| details.get("error_class").and_then(Value::as_str));
        let guess = class.is_none().then(|| guess(code, &message)).flatten();
        let reported = Reported {
            code: code.to_owned(),
            error_type: class.or(guess).unwrap_or(code).to_owned(),
            guessed: guess.is_some(),
        };
        Self {
            retryable,
            details: Box::new(details),
            reported: Some(Box::new(reported)),
            ..Self::new(FailureKind::Reported, message)
        }
    }

    /// Returns the directive of the handler's code, if the code is one.
    #[must_use]
    pub fn handler_word(&self) -> Option<HandlerWord> {
        HandlerWord::parse(&self.reported.as_ref()?.code)
    }
}

/// Guesses the class of a failure from its message, when its code is vague. The first rule that matches counts.
fn guess(code: &str, message: &str) -> Option<&'static str> {
    if !VAGUE.contains(&code) {
        return None;
    }
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let late = says(&["timed out", "timeout"]);
    if late && says(&["connect"]) {
        Some("ConnectionTimeout")
    } else if late {
        Some("Timeout")
    } else if says(&["rate limit", "too many requests"]) {
        Some("RateLimitExceeded")
    } else if says(&["connection refused", "connection reset", "connection closed"]) {
        Some("ConnectionError")
    } else if says(&["null reference", "null pointer", "internal server error"]) {
        Some("InternalServerError")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn class(code: &str, message: &str, named: Option<&str>, details: &Value) -> (String, bool) {
        let details = details.as_object().cloned().unwrap_or_default();
        let reported = JobError::reported(code, message, true, named, details).reported.unwrap();
        (reported.error_type, reported.guessed)
    }

    #[test]
    fn what_the_worker_names_goes_before_what_can_be_guessed() {
        let said = json!({"error_class": "Db.Gone"});
        for (named, details, expected) in [
            (Some("Net.Slow"), &said, ("Net.Slow", false)),
            (None, &said, ("Db.Gone", false)),
            (None, &json!({}), ("Timeout", true)),
            (None, &json!({"error_class": 5}), ("Timeout", true)),
        ] {
            let found = class("error", "The upload timed out", named, details);
            assert_eq!((found.0.as_str(), found.1), expected);
        }
    }

    #[test]
    fn only_codes_that_say_nothing_are_guessed_about() {
        for (code, message, expected) in [
            ("handler_error", "timeout while connecting to the cache", ("ConnectionTimeout", true)),
            ("handler_error", "Too Many Requests", ("RateLimitExceeded", true)),
            ("unknown", "connection reset by peer", ("ConnectionError", true)),
            ("error", "a null pointer was followed", ("InternalServerError", true)),
            ("error", "the disk is full", ("error", false)),
            ("E_DISK", "the write timed out", ("E_DISK", false)),
        ] {
            let found = class(code, message, None, &json!({}));
            assert_eq!((found.0.as_str(), found.1), expected, "{message}");
        }
    }
}
