//! Pushes under an idempotency key: the same request is applied once, and answered alike as long as the key is kept.

use super::Engine;
use super::ops::push::idempotency::{self as ops, record};
use super::views::one;
use crate::{Pushed, StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::{NewJob, Timestamp};

/// Makes the body of an answer from the outcome of a push, unless that takes a look at other jobs.
pub type AnswerOfPush = Arc<dyn Fn(&[Pushed]) -> Option<String> + Send + Sync>;

/// A push under an idempotency key.
#[derive(Clone)]
pub struct IdempotentPush {
    /// The digest of the key and of its owner.
    pub name: String,
    /// The digest of the request: under the same key the same request is the same push.
    pub request: String,
    /// Now.
    pub now: Timestamp,
    /// When the key may be used for another push.
    pub expires_at: Timestamp,
    /// The jobs.
    pub jobs: Vec<NewJob>,
    /// Makes the answer that is recorded with them.
    pub answer: AnswerOfPush,
}

/// The record of an idempotency key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordedPush {
    /// The digest of the request that used the key.
    pub request: String,
    /// The jobs as they were accepted; how full a queue was is not recorded.
    pub pushed: Vec<Pushed>,
    /// The body of the answer; `None` until [`IdempotentPushes::record`] records it.
    pub answer: Option<String>,
    /// True when the record is of an earlier request. Then this request wrote nothing.
    pub repeated: bool,
}

/// Applies pushes once per idempotency key.
#[derive(Clone)]
pub struct IdempotentPushes(pub(super) Arc<Engine>);

impl IdempotentPushes {
    /// Pushes the jobs and records the key in one transaction, or returns the record of the key. Of several pushes under one
    /// key one is applied, and the others wait for its commit. A push that is refused leaves no record.
    ///
    /// # Errors
    /// Those of [`Intake::push`](crate::Intake::push).
    #[boxed]
    pub async fn push_once(&self, push: IdempotentPush) -> Result<RecordedPush, StoreError> {
        self.0.write(push, |tx, push| Box::pin(ops::once(&mut tx.session, &mut tx.unit, push))).await?
    }

    /// Returns what is on record under a key that is in use at `now`.
    #[boxed]
    pub async fn recorded(&self, name: &str, now: Timestamp) -> Result<Option<RecordedPush>, StoreError> {
        let (action, values) = ("look up an idempotency key", [name.into(), now.0.into()]);
        one(&self.0.readers, action, &sql::SELECT_IDEMPOTENCY_KEY, &values, record).await
    }

    /// Records the answer to a request that has none yet. Returns the recorded one: a concurrent request may have recorded
    /// its own first.
    #[boxed]
    pub async fn record(&self, name: &str, request: &str, answer: String) -> Result<String, StoreError> {
        let requested = (name.to_owned(), request.to_owned(), answer);
        self.0
            .write(requested, |tx, (name, request, answer)| {
                Box::pin(ops::keep(&mut tx.session, name, request, answer))
            })
            .await
    }
}
