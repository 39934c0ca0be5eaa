//! Pushes under an idempotency key: the calls.

use super::Engine;
use super::ops::push::idempotency::{Answer as Done, Request as Asked, record};
use super::session::Reader;
use super::views::one;
use super::writer::{Answer, Request};
use crate::idempotency::{IdempotentPush, IdempotentPushes, RecordedPush};
use crate::{StoreError, sql};
use async_trait::async_trait;
use turnstone_domain::Timestamp;

impl<R: Reader> Engine<R> {
    async fn of_idempotency(&self, asked: Asked) -> Result<Done, StoreError> {
        match self.request(Request::Idempotency(Box::new(asked))).await? {
            Answer::Idempotency(done) => Ok(done),
            _ => Err(StoreError::Closed),
        }
    }
}

#[async_trait]
impl<R: Reader> IdempotentPushes for Engine<R> {
    async fn push_once(&self, push: IdempotentPush) -> Result<RecordedPush, StoreError> {
        match self.of_idempotency(Asked::Push(push)).await? {
            Done::Pushed(recorded) => Ok(recorded),
            Done::Refused(error) => Err(error),
            Done::Recorded(_) => Err(StoreError::Closed),
        }
    }

    async fn recorded(&self, name: &str, now: Timestamp) -> Result<Option<RecordedPush>, StoreError> {
        let (action, values) = ("look up an idempotency key", [name.into(), now.0.into()]);
        one(&self.readers, action, &sql::SELECT_IDEMPOTENCY_KEY, &values, record).await
    }

    async fn record(&self, name: &str, request: &str, answer: String) -> Result<String, StoreError> {
        let asked = Asked::Record { name: name.to_owned(), request: request.to_owned(), answer };
        match self.of_idempotency(asked).await? {
            Done::Recorded(answer) => Ok(answer),
            Done::Refused(error) => Err(error),
            Done::Pushed(_) => Err(StoreError::Closed),
        }
    }
}
