//! One operation on several jobs in one transaction. A job that has changed its state meanwhile is left alone. A
//! job that forks read, or whose engagement has further inputs, is not deleted.

use super::super::{cancel, delegations, prune};
use super::revive::{self, Again, Revived};
use crate::engine::rows::JobRow;
use crate::engine::session::Session;
use crate::engine::statement::read_by;
use crate::engine::unit::Unit;
use crate::{JobAction, StoreError, sql};
use turnstone_domain::{JobId, JobState, Overrides, Timestamp};

/// Those it was done to, and those it was not done to with the state they are in.
type Parted = (Vec<JobId>, Vec<(JobId, JobState)>);

/// Does it to each. Jobs that are gone by now are in neither list; nor are those that were to be dead letters.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    action: JobAction,
    ids: &[JobId],
    dead_letters: bool,
    at: Timestamp,
) -> Result<Parted, StoreError> {
    if action == JobAction::Cancel {
        delegations::lock_tree(session, ids).await?;
    }
    let keys = ids.to_vec();
    let rows = read_by(session, "read jobs", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
    let jobs: Vec<(i64, JobId, JobState, i64)> = rows
        .iter()
        .filter(|job| !dead_letters || job.is_dead_letter())
        .map(|job| (job.seq, job.id.clone(), job.state, job.stream))
        .collect();
    unit.take_in(session, rows).await?;
    // The rows are locked, so none of them can be forked any more.
    let read: Vec<(i64, i64)> = match action {
        JobAction::Delete => jobs.iter().map(|(seq, _, _, stream)| (*seq, *stream)).collect(),
        _ => Vec::new(),
    };
    let forked = prune::sources(session, &read).await?;
    let open = prune::open(session, &read).await?;
    let (mut done, mut refused, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    let mut revived = Revived::new();
    for (seq, id, state, stream) in jobs {
        let possible = match action {
            JobAction::Retry if matches!(state, JobState::Discarded | JobState::Retryable) => {
                let requested = (&Overrides::default(), &mut revived);
                match revive::again(session, unit, seq, requested, at).await {
                    Err(StoreError::NotRegistered { .. }) => false,
                    tried => matches!(tried?, Again::Done),
                }
            }
            JobAction::Cancel if !state.is_terminal() => {
                cancel::end(session, unit, seq, at).await?;
                true
            }
            JobAction::Delete if state.is_terminal() && !forked.contains(&seq) && !open.contains(&stream) => {
                gone.push((seq, stream));
                true
            }
            _ => false,
        };
        if possible {
            done.push(id);
        } else {
            refused.push((id, state));
        }
    }
    unit.flush(session).await?;
    prune::delete(session, &gone).await?;
    Ok((done, refused))
}
