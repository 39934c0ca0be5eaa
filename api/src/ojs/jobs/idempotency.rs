//! The header `Idempotency-Key` of requests that enqueue: the same request is applied once, and gets the same response
//! for 24 hours.
//!
//! A key belongs to its principal and the tenant of the request. The record is written in the transaction
//! of the push, so neither a crash nor a lost response enqueues twice.

use crate::api::{App, Shared};
use crate::reply::Failure;
use crate::request::Tenant;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use serde_json::json;
use std::sync::Arc;
use turnstone_domain::{NewJob, Timestamp, digest};
use turnstone_ojs::OjsError;
use turnstone_store::{IdempotentPush, Pushed, RecordedPush, StoreError};

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest key.
const KEY_CHARACTERS: usize = 255;
/// How long a key is kept.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// The header of a request, and the principal.
pub(super) struct IdempotencyKey(Option<Key>);

struct Key {
    key: String,
    /// The digest of the key, the principal and the tenant.
    name: String,
}

impl FromRequestParts<Shared> for IdempotencyKey {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Shared) -> Result<Self, Failure> {
        let Some(key) = sent(&parts.headers)? else { return Ok(Self(None)) };
        let tenant = Tenant::from_request_parts(parts, app).await?;
        let name = digest::of_json(&json!([tenant.principal.identity, tenant.name(), key]));
        Ok(Self(Some(Key { key, name })))
    }
}

/// Returns the key that a request carries.
fn sent(headers: &HeaderMap) -> Result<Option<String>, Failure> {
    let mut sent = headers.get_all(HEADER).iter();
    let Some(value) = sent.next() else { return Ok(None) };
    let key = value.to_str().unwrap_or_default().trim();
    let printable = key.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if printable && (1..=KEY_CHARACTERS).contains(&key.len()) && sent.next().is_none() {
        return Ok(Some(key.to_owned()));
    }
    let why = format!("must be there once at most and have 1 to {KEY_CHARACTERS} printable ASCII characters");
    Err(OjsError::invalid_request("the header Idempotency-Key", why).into())
}

/// A request under an idempotency key.
pub(super) struct KeyedRequest {
    name: String,
    request: String,
    now: Timestamp,
}

impl IdempotencyKey {
    /// Returns the request of this body to this endpoint, if it carries a key.
    pub(super) fn of(self, app: &App, endpoint: &str, body: &[u8]) -> Option<KeyedRequest> {
        let Key { key, name } = self.0?;
        // With the key in it, the digest reveals nothing about the body to readers of the database.
        let request = digest::of_json(&json!([key, endpoint, digest::of_bytes(body)]));
        Some(KeyedRequest { name, request, now: app.api.clock.now() })
    }
}

impl KeyedRequest {
    /// Returns the outcome of the same request, if it was applied before.
    ///
    /// # Errors
    /// 409 when the key was used for another request.
    pub(super) async fn recorded(&self, app: &App) -> Result<Option<RecordedPush>, Failure> {
        let found = app.api.store.idempotency.recorded(&self.name, self.now).await?;
        found.map(|recorded| self.check(recorded)).transpose()
    }

    /// Pushes jobs, unless a concurrent request has pushed them. `answer` makes the body that is recorded with them,
    /// unless that needs other jobs.
    ///
    /// # Errors
    /// Those of a push without a key. The caller passes the rest to [`Self::check`].
    pub(super) async fn push(
        &self,
        app: &App,
        jobs: Vec<NewJob>,
        answer: impl Fn(&[Pushed]) -> Option<String> + Send + Sync + 'static,
    ) -> Result<RecordedPush, StoreError> {
        let push = IdempotentPush {
            name: self.name.clone(),
            request: self.request.clone(),
            now: self.now,
            expires_at: self.now.plus_ms(KEPT_MS),
            jobs,
            answer: Arc::new(answer),
        };
        app.api.store.idempotency.push_once(push).await
    }

    /// Records a response that could not be recorded with its push, and returns the one that is valid.
    pub(super) async fn record(&self, app: &App, answer: String) -> Result<String, Failure> {
        Ok(app.api.store.idempotency.record(&self.name, &self.request, answer).await?)
    }

    /// Refuses the record of another request (409).
    pub(super) fn check(&self, recorded: RecordedPush) -> Result<RecordedPush, Failure> {
        if recorded.request == self.request {
            return Ok(recorded);
        }
        let message = "This Idempotency-Key was used for another request; nothing was stored.";
        let hint = "Repeat a request with the body that was sent first, and give a new request a new key.";
        Err(OjsError::new(409, "conflict", message, hint).into())
    }
}
