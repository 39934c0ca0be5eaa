//! Circuit breakers: the calls.

use super::Engine;
use super::ops::breakers::{self as ops, trouble};
use super::session::Args;
use super::statement::decode_readable;
use crate::breakers::{BreakerKey, BreakerStep, Breakers, Stepped, Trouble};
use crate::{StoreError, sql};
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_domain::agent::errors::Breaker;

#[async_trait]
impl Breakers for Engine {
    async fn troubled(&self) -> Result<Vec<Trouble>, StoreError> {
        let rows = self.readers.read("read breakers", &sql::SELECT_BREAKERS, Args::Values(&[])).await?;
        Ok(decode_readable("read breakers", &rows, trouble))
    }

    async fn reset(&self, key: &BreakerKey, now: Timestamp) -> Result<bool, StoreError> {
        self.write((key.clone(), now), |tx, (key, now)| {
            Box::pin(ops::reset(&mut tx.session, &mut tx.unit, key, *now))
        })
        .await
    }

    async fn step(
        &self,
        key: &BreakerKey,
        rule: &Breaker,
        step: BreakerStep,
        now: Timestamp,
    ) -> Result<Stepped, StoreError> {
        self.write((key.clone(), *rule, step, now), |tx, (key, rule, step, now)| {
            Box::pin(ops::step(&mut tx.session, &mut tx.unit, key, rule, step, *now))
        })
        .await
    }
}
