//! Calls that agents of other servers work for, and that nobody waits for any more.
//!
//! What leaves for another server is on record before it leaves. Whoever ends its job, from whichever state, leaves it to be
//! called off in the same transaction; a worker that knows the other server does that, at least once.

use super::Engine;
use super::ops::elsewhere::{self as ops, call_off};
use super::session::{Args, limit as row_limit};
use super::statement::decode_readable;
use crate::{StoreError, sql};
use serde_json::Value;
use std::sync::Arc;
use turnstone_domain::{CallId, JobId, Timestamp};

/// A call that is to be called off.
#[derive(Clone, PartialEq, Debug)]
pub struct CallOff {
    /// The call.
    pub call: CallId,
    /// The agent that works for it: its name in the configuration, or its address.
    pub place: String,
    /// What it works under there; `None` when nobody knows whether it has begun.
    pub handle: Option<Value>,
    /// How often that was tried, this time included.
    pub tries: i64,
    /// The job whose call it is.
    pub job: JobId,
}

/// What came of calling one off.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CalledOff {
    /// Nothing is done for it there any more.
    Done,
    /// It is tried again at this time.
    Again(Timestamp),
    /// Nobody tries any more; the sentence says why, and goes into an event.
    GivenUp(String),
}

/// Knows what is to be called off.
#[derive(Clone)]
pub struct Elsewhere(pub(super) Arc<Engine>);

impl Elsewhere {
    /// Takes calls whose time to be called off has come; nobody else takes them before `until`.
    ///
    /// # Errors
    /// The store's.
    pub async fn call_offs(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<CallOff>, StoreError> {
        let values = [now.0.into(), row_limit(limit).into()];
        let (action, text) = ("look for what is to be called off", &sql::SELECT_DUE_REMOTE_CALLS);
        let rows = self.0.readers.read(action, text, Args::Values(&values)).await?;
        if decode_readable(action, &rows, call_off).is_empty() {
            return Ok(Vec::new());
        }
        self.0
            .write((now, until, limit), |tx, (now, until, limit)| {
                Box::pin(ops::take_due(&mut tx.session, *now, *until, *limit))
            })
            .await
    }

    /// Notes what came of calling one off, unless somebody else has taken it since.
    ///
    /// # Errors
    /// The store's.
    pub async fn called_off(&self, one: &CallOff, how: CalledOff, at: Timestamp) -> Result<(), StoreError> {
        self.0
            .write((one.clone(), how, at), |tx, (one, how, at)| {
                Box::pin(ops::note(&mut tx.session, &mut tx.unit, one, how, *at))
            })
            .await
    }
}
