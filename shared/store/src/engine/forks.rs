//! Engagements that share the past of others: the calls.

use super::Engine;
use super::rows::{self, get};
use super::session::Reader;
use super::views::{all, one};
use super::writer::{Answer, Request};
use crate::{ForkRefusal, Forks, NewFork, StoreError, sql};
use async_trait::async_trait;
use turnstone_domain::fork::{Origin, Recorded};
use turnstone_domain::{CallId, JobId};

#[async_trait]
impl<R: Reader> Forks for Engine<R> {
    async fn fork(&self, fork: NewFork) -> Result<Result<(), ForkRefusal>, StoreError> {
        match self.request(Request::Fork(Box::new(fork))).await? {
            Answer::Forked(done) => Ok(done),
            _ => Err(StoreError::Closed),
        }
    }

    async fn origin(&self, job: &JobId) -> Result<Option<Origin>, StoreError> {
        origin(&self.readers, job).await
    }
}

/// Where the engagement of a job was forked from.
pub(super) async fn origin<R: Reader>(readers: &R, job: &JobId) -> Result<Option<Origin>, StoreError> {
    let values = [job.as_str().into()];
    one(readers, "look for a fork", &sql::FORK_OF_JOB, &values, rows::origin).await
}

/// The same with what is on record for its tools, unless they are called.
pub(super) async fn recorded<R: Reader>(
    readers: &R,
    job: &JobId,
) -> Result<Option<(Origin, Recorded)>, StoreError> {
    let Some(origin) = origin(readers, job).await? else { return Ok(None) };
    if origin.live_tools && origin.changes.tool_results.is_empty() {
        return Ok(Some((origin, Recorded::default())));
    }
    let values = [job.as_str().into()];
    let text = &sql::FORK_RECORD;
    let mut calls = all(readers, "read the record of a fork", text, &values, rows::tool_call).await?;
    if origin.live_tools {
        calls.retain(|call| origin.changes.tool_results.contains_key(call.call_id.as_str()));
    }
    for call in &mut calls {
        if let Some(outcome) = origin.changes.tool_results.get(call.call_id.as_str()) {
            call.outcome = Some(outcome.clone());
            call.handled = None;
        }
    }
    let used = all(readers, "read the stubs of a job", &sql::STUBS_OF_JOB, &values, |row| {
        get::<String>(row, "of_call").map(CallId)
    });
    Ok(Some((origin, Recorded { calls, used: used.await?.into_iter().collect() })))
}
