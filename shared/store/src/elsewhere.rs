//! Calls that agents of other servers work for, and that nobody waits for any more.
//!
//! What leaves for another server is on record before it leaves. Whoever ends its job, from whichever state, leaves it to be
//! called off in the same transaction; a worker that knows the other server does that, at least once.

use crate::StoreError;
use async_trait::async_trait;
use serde_json::Value;
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
#[async_trait]
pub trait Elsewhere: Send + Sync + 'static {
    /// Takes calls whose time to be called off has come; nobody else takes them before `until`.
    ///
    /// # Errors
    /// The store's.
    async fn call_offs(
        &self,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<CallOff>, StoreError>;

    /// Notes what came of calling one off, unless somebody else has taken it since.
    ///
    /// # Errors
    /// The store's.
    async fn called_off(&self, one: &CallOff, how: CalledOff, at: Timestamp) -> Result<(), StoreError>;
}
