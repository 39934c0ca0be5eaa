//! Chains, groups, batches and graphs: jobs that wait for one another.
//!
//! A workflow's row is locked before its steps are looked at, and every end of a job that is a step leads here in the
//! transaction that ended it, so each end counts once. Work per end is that of the steps which wait for it: counters say
//! when all have ended, and nobody looks through the others.

mod advance;
mod cancel;
mod create;
mod rows;

use super::super::session::Session;
use super::super::unit::Unit;
use crate::{NewWorkflow, StoreError, WorkflowCancel};
use turnstone_domain::{Ids, JobState, Timestamp};

pub(in super::super) use advance::advance;
pub(in super::super) use rows::WorkflowRow;

/// What is asked.
pub(in super::super) enum Request {
    Create(Box<NewWorkflow>),
    Cancel { id: String, tenant: Option<String>, at: Timestamp },
}

/// What became of it.
pub(in super::super) enum Answer {
    Created(Result<(), StoreError>),
    Cancelled(WorkflowCancel),
}

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    request: &Request,
    _ids: &dyn Ids,
) -> Result<Answer, StoreError> {
    Ok(match request {
        Request::Create(new) => Answer::Created(create::apply(session, unit, new).await?),
        Request::Cancel { id, tenant, at } => {
            Answer::Cancelled(cancel::apply(session, unit, id, tenant.as_deref(), *at).await?)
        }
    })
}

/// A step of a workflow that has ended, in the transaction that ended it.
#[derive(Clone, Debug)]
pub(in super::super) struct Ended {
    pub workflow_seq: i64,
    pub step: i64,
    pub state: JobState,
    pub at: Timestamp,
}
