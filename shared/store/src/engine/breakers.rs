//! Circuit breakers: the calls.

use super::Engine;
use super::ops::breakers::{Answer as BreakerAnswer, Request as BreakerRequest, trouble};
use super::session::{Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer, Request};
use crate::breakers::{BreakerKey, BreakerStep, Breakers, Stepped, Trouble};
use crate::{StoreError, sql};
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_domain::agent::errors::Breaker;

#[async_trait]
impl<R: Reader> Breakers for Engine<R> {
    async fn troubled(&self) -> Result<Vec<Trouble>, StoreError> {
        let rows = self.readers.read("read breakers", &sql::SELECT_BREAKERS, Args::Values(&[])).await?;
        decode_all(&rows, trouble)
    }

    async fn reset(&self, key: &BreakerKey, now: Timestamp) -> Result<bool, StoreError> {
        match self.request(Request::Breakers(BreakerRequest::Reset { key: key.clone(), now })).await? {
            Answer::Breakers(BreakerAnswer::Reset(was)) => Ok(was),
            _ => Err(StoreError::Closed),
        }
    }

    async fn step(
        &self,
        key: &BreakerKey,
        rule: &Breaker,
        step: BreakerStep,
        now: Timestamp,
    ) -> Result<Stepped, StoreError> {
        let asked = BreakerRequest::Step { key: key.clone(), rule: *rule, step, now };
        match self.request(Request::Breakers(asked)).await? {
            Answer::Breakers(BreakerAnswer::Stepped(stepped)) => Ok(stepped),
            _ => Err(StoreError::Closed),
        }
    }
}
