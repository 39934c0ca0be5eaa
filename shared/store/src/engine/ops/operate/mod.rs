//! What operators do to many jobs at once: dead letters, bulk, statistics, tenants: the writes.

mod delete;
mod reset;
mod revive;
mod several;

use super::super::session::Session;
use super::super::unit::Unit;
use crate::{ActionOutcome, JobAction, StoreError};
use turnstone_domain::{Ids, JobId, JobState, Overrides, Timestamp};

/// What is asked.
pub(in super::super) enum Request {
    Retry { id: JobId, tenant: Option<String>, dead_letter: bool, overrides: Box<Overrides>, at: Timestamp },
    Delete { id: JobId, tenant: Option<String> },
    Several { action: JobAction, ids: Vec<JobId>, dead_letters: bool, at: Timestamp },
    Reset,
}

/// What became of it.
pub(in super::super) enum Answer {
    One(ActionOutcome),
    Several { done: Vec<JobId>, refused: Vec<(JobId, JobState)> },
    Empty,
}

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    request: &Request,
    _ids: &dyn Ids,
) -> Result<Answer, StoreError> {
    Ok(match request {
        Request::Retry { id, tenant, dead_letter, overrides, at } => {
            let job = (id, tenant.as_deref(), *dead_letter);
            Answer::One(revive::apply(session, unit, job, overrides, *at).await?)
        }
        Request::Delete { id, tenant } => {
            Answer::One(delete::apply(session, unit, id, tenant.as_deref()).await?)
        }
        Request::Several { action, ids, dead_letters, at } => {
            let (done, refused) = several::apply(session, unit, *action, ids, *dead_letters, *at).await?;
            Answer::Several { done, refused }
        }
        Request::Reset => {
            reset::apply(session).await?;
            Answer::Empty
        }
    })
}
