//! Circuit breakers: the calls.

use super::Engine;
use super::ops::breakers::{Answer as Told, Request as Asked, trouble};
use super::session::{Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer, Request};
use crate::breakers::{BreakerKey, Breakers, Passage, Trouble};
use crate::{StoreError, sql};
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_domain::agent::errors::Breaker;

impl<R: Reader> Engine<R> {
    async fn of_breakers(&self, asked: Asked) -> Result<Told, StoreError> {
        match self.request(Request::Breakers(asked)).await? {
            Answer::Breakers(told) => Ok(told),
            _ => Err(StoreError::Closed),
        }
    }
}

#[async_trait]
impl<R: Reader> Breakers for Engine<R> {
    async fn troubled(&self) -> Result<Vec<Trouble>, StoreError> {
        let rows = self.readers.read("read breakers", &sql::BREAKERS_TROUBLED, Args::Values(&[])).await?;
        decode_all(&rows, trouble)
    }

    async fn pass(&self, key: &BreakerKey, rule: &Breaker, now: Timestamp) -> Result<Passage, StoreError> {
        match self.of_breakers(Asked::Pass { key: key.clone(), rule: *rule, now }).await? {
            Told::Passage(passage) => Ok(passage),
            _ => Err(StoreError::Closed),
        }
    }

    async fn reset(&self, key: &BreakerKey) -> Result<bool, StoreError> {
        match self.of_breakers(Asked::Reset { key: key.clone() }).await? {
            Told::Reset(was) => Ok(was),
            _ => Err(StoreError::Closed),
        }
    }

    async fn failed(
        &self,
        key: &BreakerKey,
        rule: &Breaker,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        match self.of_breakers(Asked::Failed { key: key.clone(), rule: *rule, now }).await? {
            Told::Noted(open_until) => Ok(open_until),
            _ => Err(StoreError::Closed),
        }
    }

    async fn succeeded(
        &self,
        key: &BreakerKey,
        rule: &Breaker,
        probe: bool,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.of_breakers(Asked::Succeeded { key: key.clone(), rule: *rule, probe, now }).await.map(|_| ())
    }

    async fn not_made(&self, key: &BreakerKey, now: Timestamp) -> Result<(), StoreError> {
        self.of_breakers(Asked::NotMade { key: key.clone(), now }).await.map(|_| ())
    }
}
