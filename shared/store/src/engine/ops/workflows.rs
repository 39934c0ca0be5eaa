//! Chains, groups and batches: jobs that wait for one another: the writes.

use super::super::session::Session;
use super::super::unit::Unit;
use crate::StoreError;
use turnstone_domain::{Ids, JobState, Timestamp};

/// What is asked.
pub(in super::super) enum Request {}

/// What became of it.
pub(in super::super) enum Answer {}

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    _session: &mut S,
    _unit: &mut Unit,
    request: &Request,
    _ids: &dyn Ids,
) -> Result<Answer, StoreError> {
    match *request {}
}

/// A step of a workflow that has ended, in the transaction that ended it.
#[derive(Clone, Debug)]
pub(in super::super) struct Ended {
    pub workflow_seq: i64,
    pub step: i64,
    pub job_seq: i64,
    pub state: JobState,
    pub at: Timestamp,
}

/// Goes on with the workflows whose steps have ended: enqueues what waited for them, or ends the workflow.
pub(in super::super) async fn advance<S: Session>(
    _session: &mut S,
    _unit: &mut Unit,
    _ended: Vec<Ended>,
) -> Result<(), StoreError> {
    Ok(())
}
