//! Headers of outgoing calls in the configuration: a literal, or a reference to a secret.

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use turnstone_telemetry::{Secret, SecretRef};

/// Headers that belong to the call itself and cannot be configured.
const OWN: [&str; 7] =
    ["connection", "content-length", "host", "idempotency-key", "te", "transfer-encoding", "upgrade"];

/// Headers whose value is a credential: a literal is refused, because configuration files get shown and
/// shared.
const CREDENTIALS: [&str; 5] = ["api-key", "authorization", "cookie", "proxy-authorization", "x-api-key"];

/// The value of a configured header.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum HeaderText {
    /// `Accept-Language = "en"`.
    Literal(String),
    /// `Authorization = { secret = "env:TOKEN", prefix = "Bearer " }`.
    Secret(SecretHeader),
    /// A value of a document, which is treated as a secret.
    #[serde(skip)]
    Given(Secret),
}

impl HeaderText {
    /// Returns a value that came with a document: a secret, if its name says so.
    #[must_use]
    pub fn of_document(name: &str, value: &str) -> Self {
        let lower = name.to_ascii_lowercase();
        match CREDENTIALS.contains(&lower.as_str()) || names_a_secret(name) {
            true => Self::Given(Secret::given(value)),
            false => Self::Literal(value.to_owned()),
        }
    }
}

/// Words that mark a name as that of a credential.
const SECRET_WORDS: [&str; 7] = ["key", "token", "secret", "password", "passwd", "credential", "credentials"];

/// Returns true if a name is that of a credential.
#[must_use]
pub fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(['_', '-', '.']).any(|word| SECRET_WORDS.contains(&word))
}

/// A header value that is a secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretHeader {
    /// The reference of the secret: `env:NAME` or `file:/path`.
    pub secret: SecretRef,
    /// The text before the secret, such as `Bearer ` with its blank.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
}

/// Checks names and literals when the configuration is read.
///
/// # Errors
/// A sentence that names the header; a value is never repeated.
pub fn check_headers(headers: &BTreeMap<String, HeaderText>) -> Result<(), String> {
    for (name, text) in headers {
        let parsed =
            HeaderName::try_from(name.as_str()).map_err(|_| format!("headers.{name}: not a header name"))?;
        if OWN.contains(&parsed.as_str()) {
            return Err(format!("headers.{name}: this header is set by Turnstone itself"));
        }
        if let HeaderText::Literal(value) = text {
            if CREDENTIALS.contains(&parsed.as_str()) {
                return Err(format!(
                    "headers.{name}: a credential is given by reference: {{ secret = \"env:NAME\" }}"
                ));
            }
            HeaderValue::try_from(value.as_str())
                .map_err(|_| format!("headers.{name}: not a header value"))?;
        }
    }
    Ok(())
}

/// Returns the headers with their secrets, fetched now.
///
/// # Errors
/// A sentence that names the header and the secret's reference, never a value.
pub fn resolve_headers(headers: &BTreeMap<String, HeaderText>) -> Result<HeaderMap, String> {
    let mut resolved = HeaderMap::with_capacity(headers.len());
    for (name, text) in headers {
        let key =
            HeaderName::try_from(name.as_str()).map_err(|_| format!("header {name}: not a header name"))?;
        let value = match text {
            HeaderText::Literal(value) => HeaderValue::try_from(value.as_str()),
            HeaderText::Secret(SecretHeader { secret, prefix }) => {
                let secret = secret.resolve().map_err(|problem| format!("header {name}: {problem}"))?;
                HeaderValue::try_from(format!("{prefix}{}", secret.expose()))
            }
            HeaderText::Given(value) => HeaderValue::try_from(value.expose()),
        };
        let mut value = value.map_err(|_| format!("header {name}: its value cannot be sent in a header"))?;
        value.set_sensitive(!matches!(text, HeaderText::Literal(_)));
        resolved.insert(key, value);
    }
    Ok(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(json: &str) -> BTreeMap<String, HeaderText> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn credentials_by_literal_are_refused_and_not_repeated() {
        let error = check_headers(&headers(r#"{"Authorization": "Bearer sk-live-1"}"#)).unwrap_err();
        assert!(
            error.contains("Authorization") && error.contains("env:NAME") && !error.contains("sk-live"),
            "{error}"
        );
        assert!(
            check_headers(&headers(r#"{"Idempotency-Key": "x"}"#)).unwrap_err().contains("Turnstone itself")
        );
        assert!(check_headers(&headers(r#"{"a b": "x"}"#)).is_err());
        assert!(check_headers(&headers(r#"{"Accept": "x\ny"}"#)).is_err());
        assert!(check_headers(&headers(r#"{"Accept": "text/plain", "X-Key": {"secret": "env:K"}}"#)).is_ok());
    }

    #[test]
    fn a_secret_is_marked_sensitive_and_carries_its_prefix() {
        let resolved =
            resolve_headers(&headers(r#"{"Authorization": {"secret": "env:PATH", "prefix": "Bearer "}}"#))
                .unwrap();
        let value = &resolved["authorization"];
        assert!(value.is_sensitive() && value.to_str().unwrap().starts_with("Bearer /"));
        let error =
            resolve_headers(&headers(r#"{"X-Key": {"secret": "env:TURNSTONE_SURELY_UNSET"}}"#)).unwrap_err();
        assert!(error.contains("X-Key") && error.contains("TURNSTONE_SURELY_UNSET"), "{error}");
    }
}
