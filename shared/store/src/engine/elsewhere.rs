//! Calls that agents of other servers work for: the calls.

use super::Engine;
use super::ops::elsewhere::{Request as Asked, call_off};
use super::session::{Args, Reader, limit as row_limit};
use super::statement::decode_all;
use super::writer::{Answer, Request};
use crate::elsewhere::{CallOff, CalledOff, Elsewhere};
use crate::{StoreError, sql};
use async_trait::async_trait;
use turnstone_domain::Timestamp;

#[async_trait]
impl<R: Reader> Elsewhere for Engine<R> {
    async fn call_offs(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<CallOff>, StoreError> {
        let values = [now.0.into(), row_limit(limit).into()];
        let (action, text) = ("look for what is to be called off", &sql::SELECT_DUE_REMOTE_CALLS);
        let rows = self.readers.read(action, text, Args::Values(&values)).await?;
        if decode_all(&rows, call_off)?.is_empty() {
            return Ok(Vec::new());
        }
        match self.request(Request::Elsewhere(Asked::Take { now, until, limit })).await? {
            Answer::CallOffs(taken) => Ok(taken),
            _ => Err(StoreError::Closed),
        }
    }

    async fn called_off(&self, one: &CallOff, how: CalledOff, at: Timestamp) -> Result<(), StoreError> {
        self.request(Request::Elsewhere(Asked::Note { one: Box::new(one.clone()), how, at }))
            .await
            .map(|_| ())
    }
}
