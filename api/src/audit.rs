//! The audit of operators: one line in the log for every action.

use crate::reply::Failure;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use turnstone_domain::digest;

/// Characters of a key's digest that distinguish keys without revealing one.
const SHOWN: usize = 12;

/// The sender of the request, as the log names it.
pub(crate) struct Operator(String);

impl Operator {
    fn of(headers: &HeaderMap) -> Self {
        let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let key = sent.and_then(|header| header.split_once(' ')).map(|(_, key)| digest::of_text(key.trim()));
        Self(key.map_or_else(
            || "anonymous".to_owned(),
            |digest| format!("key {}", digest.get(..SHOWN).unwrap_or(&digest)),
        ))
    }

    /// Writes the line: the action, its target, and the outcome.
    pub(crate) fn did(&self, action: &str, what: &str, outcome: &str) {
        tracing::info!(who = self.0, action, what, outcome, "an operator acted");
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Operator {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Ok(Self::of(&parts.headers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_key_is_named_by_its_digest_alone() {
        let mut headers = HeaderMap::new();
        assert_eq!(Operator::of(&headers).0, "anonymous");
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer secret-key"));
        let named = Operator::of(&headers).0;
        assert!(
            named.starts_with("key ") && named.len() == 4 + SHOWN && !named.contains("secret"),
            "{named}"
        );
    }
}
