//! Maps a failed call to an error, by which the turn tries the next model, waits, or gives up. All providers
//! share this mapping.

use crate::model::ModelError;
use crate::tool::outbound::error_codes;
use crate::tool::outbound::{self, excerpt};
use chrono::DateTime;
use reqwest::Response;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use turnstone_specs::agent_spec::model::RetryPolicy;

/// The most bytes of an error's body that are read.
const READ: usize = 16 * 1024;

/// The most characters of a provider's message in an error.
const TOLD: usize = 300;

/// Returns the error for a response without success. The policy of a document decides which statuses permit another try,
/// if there is one.
pub(super) async fn of_response(
    response: Response,
    policy: Option<&RetryPolicy>,
    describe: &(impl Fn(&str) -> String + Sync),
) -> ModelError {
    let status = response.status().as_u16();
    let retry_after_ms = retry_after_ms(response.headers());
    let read = outbound::read_start(response, READ).await;
    let said = match &read {
        Ok((body, _)) => message(body),
        Err(error) => error.to_string(),
    };
    let whole = read.as_ref().map(|(body, _)| String::from_utf8_lossy(body)).unwrap_or_default();
    let error = of_status(status, (&said, &whole), retry_after_ms, describe);
    let Some(policy) = policy else { return error };
    let body: Value = read.ok().and_then(|(body, _)| serde_json::from_slice(&body).ok()).unwrap_or_default();
    match (policy.covers(status, &error_codes(&body)), error) {
        (true, ModelError::Refused(text)) => ModelError::Unavailable(text),
        (true, error) => error,
        (false, ModelError::RateLimited { message, .. } | ModelError::Unavailable(message)) => {
            ModelError::Refused(message)
        }
        (false, error) => error,
    }
}

/// Returns the error for a failure inside a response of status 200: in the middle of a stream, or from a
/// gateway that answers 200 to its own errors.
pub(super) fn in_document(error: &Value, describe: &impl Fn(&str) -> String) -> ModelError {
    let number = |said: &Value| said.as_u64().or_else(|| said.as_str()?.parse().ok());
    let status = [&error["code"], &error["status"]]
        .into_iter()
        .find_map(number)
        .and_then(|code| u16::try_from(code).ok())
        .filter(|code| (400..600).contains(code))
        .or_else(|| [&error["code"], &error["type"]].into_iter().find_map(|word| status_of(word.as_str()?)))
        .unwrap_or(500);
    let said = message_in(error).unwrap_or_else(|| "no message".to_owned());
    of_status(status, (&said, &error.to_string()), None, describe)
}

/// Returns the status for a provider's error code, as if the answer had not begun yet.
fn status_of(word: &str) -> Option<u16> {
    Some(match word {
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "overloaded_error" => 529,
        "timeout_error" => 504,
        "authentication_error" | "invalid_api_key" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" | "model_not_found" => 404,
        "request_too_large" => 413,
        "invalid_request_error" | "invalid_prompt" | "context_length_exceeded" => 400,
        _ => return None,
    })
}

/// Parts of the codes and messages by which providers say that a prompt is too long for the model.
const TOO_LONG: [&str; 13] = [
    "context_length",
    "context length",
    "context_window",
    "context window",
    "context size",
    "context_size",
    "maximum context",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "too many input tokens",
    "reduce the length",
    "input token count",
];

/// Returns true if a provider refuses a request for the length of its prompt.
fn is_too_long(status: u16, whole: &str) -> bool {
    let whole = whole.to_lowercase();
    status == 413 || (matches!(status, 400 | 422) && TOO_LONG.iter().any(|words| whole.contains(words)))
}

/// Returns the error for a status, with the provider's message and all that it says.
fn of_status(
    status: u16,
    (said, whole): (&str, &str),
    retry_after_ms: Option<u64>,
    describe: &impl Fn(&str) -> String,
) -> ModelError {
    let sentence = if said.is_empty() {
        format!("status {status}")
    } else {
        format!("status {status}: {}", excerpt(said, TOLD))
    };
    match status {
        429 => ModelError::RateLimited { message: describe(&sentence), retry_after_ms },
        503 | 529 if retry_after_ms.is_some() => {
            ModelError::RateLimited { message: describe(&sentence), retry_after_ms }
        }
        // 404 is a model that this provider does not have; 408, 409 and 425 permit another try.
        404 | 408 | 409 | 425 | 500.. => ModelError::Unavailable(describe(&sentence)),
        300..=399 => ModelError::Refused(describe(&format!(
            "{sentence} (a redirect, which is not followed; correct base_url)"
        ))),
        _ if is_too_long(status, whole) => ModelError::TooLong(describe(&sentence)),
        _ => ModelError::Refused(describe(&sentence)),
    }
}

fn message(body: &[u8]) -> String {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let found = parsed.as_ref().and_then(|value| message_in(&value["error"]).or_else(|| message_in(value)));
    found.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

fn message_in(error: &Value) -> Option<String> {
    let text = [&error["message"], &error["detail"], error].into_iter().find_map(Value::as_str);
    text.filter(|text| !text.is_empty()).map(ToOwned::to_owned)
}

/// Returns the delay that the provider demands, in milliseconds. It is `retry-after-ms`, or `Retry-After` in
/// seconds or as a date. A date is compared with the response's own `Date`, so that wrong clocks do not
/// matter.
fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let ms = text("retry-after-ms").and_then(|ms| outbound::milliseconds(ms, 1.0));
    let wait = ms.or_else(|| outbound::wait_ms(text(RETRY_AFTER.as_str())?));
    if wait.is_some() {
        return wait;
    }
    let until = DateTime::parse_from_rfc2822(text(RETRY_AFTER.as_str())?).ok()?;
    let now = DateTime::parse_from_rfc2822(text(DATE.as_str())?).ok()?;
    u64::try_from((until - now).num_milliseconds()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn describe(text: &str) -> String {
        text.to_owned()
    }

    /// A prompt that is too long is known by the codes and the words of the providers.
    #[test]
    fn a_prompt_that_is_too_long_is_known() {
        for (status, said) in [
            (400, r#"{"code":"context_length_exceeded","message":"no"}"#),
            (400, "This model's maximum context length is 8192 tokens."),
            (400, "prompt is too long: 210000 tokens > 200000 maximum"),
            (422, "Input is too long for requested model."),
            (400, "the request exceeds the available context size"),
            (413, ""),
        ] {
            let error = of_status(status, ("", said), None, &|text: &str| text.to_owned());
            assert!(matches!(error, ModelError::TooLong(_)), "{said}: {error:?}");
        }
        for (status, said) in
            [(400, "tools: the name is too long"), (401, "context window"), (500, "context window")]
        {
            let error = of_status(status, ("", said), None, &|text: &str| text.to_owned());
            assert!(!matches!(error, ModelError::TooLong(_)), "{said}: {error:?}");
        }
    }

    #[test]
    fn a_status_says_what_the_turn_does_next() {
        for status in [404, 408, 409, 500, 502, 503, 529] {
            assert!(
                matches!(of_status(status, ("x", "x"), None, &describe), ModelError::Unavailable(_)),
                "{status}"
            );
        }
        for status in [301, 400, 401, 402, 403, 422] {
            assert!(
                matches!(of_status(status, ("x", "x"), None, &describe), ModelError::Refused(_)),
                "{status}"
            );
        }
        for status in [429, 503, 529] {
            let limited = of_status(status, ("x", ""), Some(5), &describe);
            assert!(matches!(limited, ModelError::RateLimited { retry_after_ms: Some(5), .. }), "{status}");
        }
        assert_eq!(
            of_status(400, (&"y".repeat(1000), ""), None, &describe).to_string().chars().count(),
            "status 400: …".chars().count() + 300
        );
    }

    #[test]
    fn a_providers_message_is_found_wherever_it_stands() {
        for body in [
            r#"{"error": {"message": "m", "code": 400}}"#,
            r#"{"error": "m"}"#,
            r#"{"message": "m"}"#,
            r#"{"detail": "m"}"#,
            "m",
        ] {
            assert_eq!(message(body.as_bytes()), "m", "{body}");
        }
    }

    #[test]
    fn an_error_inside_a_document_counts_by_its_number_or_its_word() {
        let found = |error: Value| in_document(&error, &describe);
        for error in [
            json!({"code": 429, "message": "slow down"}),
            json!({"code": "429", "message": "slow down"}),
            json!({"type": "rate_limit_error", "message": "slow down"}),
            json!({"code": "rate_limit_exceeded", "message": "slow down"}),
        ] {
            assert!(matches!(found(error.clone()), ModelError::RateLimited { .. }), "{error}");
        }
        for error in [
            json!({"code": 500, "message": "m"}),
            json!({"type": "overloaded_error", "message": "m"}),
            json!({"code": "server_error", "message": "m"}),
            json!({"code": 7, "message": "m"}),
            json!("m"),
        ] {
            assert!(
                matches!(found(error.clone()), ModelError::Unavailable(text) if text.contains('m')),
                "{error}"
            );
        }
        for error in [json!({"code": "invalid_api_key"}), json!({"type": "invalid_request_error"})] {
            assert!(matches!(found(error.clone()), ModelError::Refused(_)), "{error}");
        }
    }

    #[test]
    fn retry_after_is_read_in_all_three_forms() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            let headers =
                pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
            retry_after_ms(&headers)
        };
        assert_eq!(of(&[("retry-after", "7")]), Some(7000));
        assert_eq!(of(&[("retry-after", "7"), ("retry-after-ms", "250")]), Some(250));
        let date = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
        assert_eq!(of(&[("retry-after", "Wed, 21 Oct 2015 07:28:30 GMT"), date]), Some(30_000));
        assert_eq!(of(&[("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT"), date]), None);
        for (sent, ms) in [("3.0", 3_000), (" 2.25 ", 2_250), ("0", 0), ("0.5", 500), ("1e2", 100_000)] {
            assert_eq!(of(&[("retry-after", sent)]), Some(ms), "{sent}");
        }
        assert_eq!(of(&[("retry-after-ms", "250.4")]), Some(251), "never sooner than demanded");
        assert!(
            of(&[("retry-after", "99999999999999999999")]).is_some_and(|ms| ms > 1_000_000_000),
            "a far one"
        );
        for nonsense in ["soon", "-1", "NaN", "inf", "", "3 s"] {
            assert_eq!(of(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
    }
}
