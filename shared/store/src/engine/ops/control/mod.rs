//! An engagement is paused, resumed, forked, merged, or one of its calls made again: the writes.

pub(super) mod branch;
pub(super) mod copy;
mod fork;
mod hold;
mod keys;
mod merge;
mod retry_tool;

use super::super::rows::JobRow;
use super::super::session::Session;
use super::super::statement::read_by;
use super::super::unit::Unit;
use crate::control::{Branch, Fork, Merge, Merged, Refusal, Retried, ServerKey, Target, ToolRetry};
use crate::{StoreError, sql};
use turnstone_domain::{Ids, JobState};

/// What is asked.
pub(in super::super) enum Request {
    Pause { target: Target, reason: Option<String> },
    Resume { target: Target, approved: Option<bool>, comment: Option<String> },
    Fork { target: Target, fork: Fork },
    Merge { target: Target, merge: Merge },
    RetryTool { target: Target, retry: ToolRetry },
    KeepKey(ServerKey),
}

/// What became of it.
pub(in super::super) enum Answer {
    State(Result<JobState, Refusal>),
    Branch(Result<Branch, Refusal>),
    Merged(Result<Merged, Refusal>),
    Retried(Result<Retried, Refusal>),
    Key(ServerKey),
}

/// What was done, or why nothing was; the outer error is the database's.
type Done<T> = Result<Result<T, Refusal>, StoreError>;

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    request: &Request,
    ids: &dyn Ids,
) -> Result<Answer, StoreError> {
    Ok(match request {
        Request::Pause { target, reason } => {
            Answer::State(hold::pause(session, unit, target, reason.as_deref()).await?)
        }
        Request::Resume { target, approved, comment } => {
            Answer::State(hold::resume(session, unit, target, *approved, comment.as_deref()).await?)
        }
        Request::Fork { target, fork } => {
            Answer::Branch(fork::apply(session, unit, target, fork, ids).await?)
        }
        Request::Merge { target, merge } => {
            Answer::Merged(merge::apply(session, unit, target, merge, ids).await?)
        }
        Request::RetryTool { target, retry } => {
            Answer::Retried(retry_tool::apply(session, unit, target, retry).await?)
        }
        Request::KeepKey(key) => Answer::Key(keys::keep(session, key).await?),
    })
}

/// Takes in the job that is meant; nobody else changes it until this is committed.
async fn find<S: Session>(session: &mut S, unit: &mut Unit, target: &Target) -> Done<i64> {
    let keys = vec![(target.job.clone(),)];
    let mut rows = read_by(session, "read a job", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
    rows.retain(|job| target.tenant.is_none() || job.tenant == target.tenant);
    unit.take_in(session, rows).await?;
    Ok(unit.seq_of(&target.job).ok_or(Refusal::NoJob))
}
