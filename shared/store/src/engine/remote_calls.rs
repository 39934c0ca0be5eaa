//! Calls of remote agents whose results are no longer needed.
//!
//! A call is recorded before it leaves for another server. The transaction that ends its job, from whichever state,
//! also requests the cancellation of the call. A worker that knows the other server sends it, at least once.

use super::Engine;
use super::ops::remote_calls::{self as ops, call_to_cancel};
use super::session::{Args, limit as row_limit};
use super::statement::decode_readable;
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use serde_json::Value;
use std::sync::Arc;
use turnstone_domain::{CallId, JobId, Timestamp};

/// A remote call to cancel.
#[derive(Clone, PartialEq, Debug)]
pub struct CallToCancel {
    /// The call.
    pub call: CallId,
    /// The agent that works for it: its name in the configuration, or its address.
    pub place: String,
    /// The id of its work on the other server; `None` when it is unknown whether that work has begun.
    pub handle: Option<Value>,
    /// How often that was tried, this time included.
    pub tries: i64,
    /// The job whose call it is.
    pub job: JobId,
}

/// The outcome of a cancellation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CancelAttempt {
    /// Nothing is done for it there any more.
    Done,
    /// It is tried again at this time.
    Again(Timestamp),
    /// No further attempt is made; the sentence says why, and is stored in an event.
    GivenUp(String),
}

/// The handle for remote calls to cancel.
#[derive(Clone)]
pub struct RemoteCalls(pub(super) Arc<Engine>);

impl RemoteCalls {
    /// Takes calls whose time of cancellation has come; no other process takes them before `until`.
    ///
    /// # Errors
    /// The store's.
    #[boxed]
    pub async fn take(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<CallToCancel>, StoreError> {
        let values = [now.0.into(), row_limit(limit).into()];
        let (action, text) = ("read remote calls to cancel", &sql::SELECT_DUE_REMOTE_CALLS);
        let rows = self.0.readers.read(action, text, Args::Values(&values)).await?;
        if decode_readable(action, &rows, call_to_cancel).is_empty() {
            return Ok(Vec::new());
        }
        self.0
            .write((now, until, limit), |tx, (now, until, limit)| {
                Box::pin(ops::take_due(&mut tx.session, *now, *until, *limit))
            })
            .await
    }

    /// Records the outcome of a cancellation, unless another process has taken the call since.
    ///
    /// # Errors
    /// The store's.
    #[boxed]
    pub async fn record(
        &self,
        one: &CallToCancel,
        how: CancelAttempt,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.0
            .write((one.clone(), how, at), |tx, (one, how, at)| {
                Box::pin(ops::note(&mut tx.session, &mut tx.unit, one, how, *at))
            })
            .await
    }
}
