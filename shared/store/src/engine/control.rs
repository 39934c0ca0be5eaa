//! An engagement is paused, resumed, forked, merged, or one of its calls made again: the calls.

use super::Engine;
use super::ops::control::{Answer as Did, Request as Asked};
use super::rows;
use super::session::{Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer, Request};
use crate::control::{Branch, Controlled, Fork, Merge, Merged, Retried, ServerKey, Target, ToolRetry};
use crate::{Control, StoreError, sql};
use async_trait::async_trait;
use turnstone_domain::JobState;

impl<R: Reader> Engine<R> {
    async fn control(&self, asked: Asked) -> Result<Did, StoreError> {
        match self.request(Request::Control(asked)).await? {
            Answer::Control(did) => Ok(did),
            _ => Err(StoreError::Closed),
        }
    }
}

#[async_trait]
impl<R: Reader> Control for Engine<R> {
    async fn pause(&self, target: Target, reason: Option<String>) -> Controlled<JobState> {
        match self.control(Asked::Pause { target, reason }).await? {
            Did::State(done) => Ok(done),
            _ => Err(StoreError::Closed),
        }
    }

    async fn resume(
        &self,
        target: Target,
        approved: Option<bool>,
        comment: Option<String>,
    ) -> Controlled<JobState> {
        match self.control(Asked::Resume { target, approved, comment }).await? {
            Did::State(done) => Ok(done),
            _ => Err(StoreError::Closed),
        }
    }

    async fn fork(&self, target: Target, fork: Fork) -> Controlled<Branch> {
        match self.control(Asked::Fork { target, fork }).await? {
            Did::Branch(done) => Ok(done),
            _ => Err(StoreError::Closed),
        }
    }

    async fn merge(&self, target: Target, merge: Merge) -> Controlled<Merged> {
        match self.control(Asked::Merge { target, merge }).await? {
            Did::Merged(done) => Ok(done),
            _ => Err(StoreError::Closed),
        }
    }

    async fn retry_tool(&self, target: Target, retry: ToolRetry) -> Controlled<Retried> {
        match self.control(Asked::RetryTool { target, retry }).await? {
            Did::Retried(done) => Ok(done),
            _ => Err(StoreError::Closed),
        }
    }

    async fn keep_key(&self, key: ServerKey) -> Result<ServerKey, StoreError> {
        match self.control(Asked::KeepKey(key)).await? {
            Did::Key(kept) => Ok(kept),
            _ => Err(StoreError::Closed),
        }
    }

    async fn keys(&self, beginning: &str) -> Result<Vec<ServerKey>, StoreError> {
        let rows = self.readers.read("read keys", &sql::SELECT_SERVER_KEYS, Args::Values(&[])).await?;
        let mut keys = decode_all(&rows, rows::server_key)?;
        keys.retain(|key| key.name.starts_with(beginning));
        Ok(keys)
    }
}
