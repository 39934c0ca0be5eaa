//! What workers in any language write, reached over HTTP: acknowledgements, failures, beats, saved states, progress: the writes.

mod activate;
mod heartbeat;
mod progress;
mod report;
mod saved_state;

pub(in super::super) use report::apply as report;
pub(super) use report::{failure, retry_policies};

use super::super::definitions::Definitions;
use super::super::rows::JobRow;
use super::super::session::{Args, Session};
use super::super::unit::Unit;
use super::claim;
use crate::{Directive, Heartbeat, HeartbeatAnswer, NewProgress, RemoteOutcome, StoreError, sql};
use turnstone_domain::job::SavedState;
use turnstone_domain::{Ids, JobId, Timestamp};

/// What is asked.
pub(in super::super) enum Request {
    Fetch(claim::Ask),
    Heartbeat(Heartbeat),
    Direct { worker: String, directive: Option<Directive> },
    Activate { job: JobId, tenant: Option<String>, at: Timestamp },
    SaveState { job: JobId, tenant: Option<String>, state: String, at: Timestamp },
    ForgetState { job: JobId, tenant: Option<String> },
    Progress { job: JobId, tenant: Option<String>, progress: NewProgress, at: Timestamp },
}

/// What became of it.
pub(in super::super) enum Answer {
    /// What was claimed, and whether asking again may give more.
    Fetched {
        rows: Vec<JobRow>,
        busy: bool,
    },
    Heard(Result<HeartbeatAnswer, StoreError>),
    Activated(Box<RemoteOutcome<JobRow>>),
    Saved(RemoteOutcome<SavedState>),
    /// Whether there is what was named.
    Known(bool),
}

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    request: &Request,
    ids: &dyn Ids,
) -> Result<Answer, StoreError> {
    Ok(match request {
        Request::Fetch(ask) => {
            // Plain jobs have no agents.
            let taken = claim::take(session, unit, ask, &mut Definitions::default(), ids).await?;
            unit.flush(session).await?;
            let rows = taken.seqs.into_iter().filter_map(|seq| unit.job(seq).cloned()).collect();
            Answer::Fetched { rows, busy: taken.busy }
        }
        Request::Heartbeat(heartbeat) => Answer::Heard(heartbeat::apply(session, unit, heartbeat).await?),
        Request::Direct { worker, directive } => {
            let values = [worker.as_str().into(), directive.map(Directive::as_str).into()];
            let told = session
                .execute("direct a worker", &sql::UPDATE_WORKER_DIRECTIVE, Args::Values(&values))
                .await?;
            Answer::Known(told > 0)
        }
        Request::Activate { job, tenant, at } => {
            Answer::Activated(Box::new(activate::apply(session, unit, job, tenant.as_deref(), *at).await?))
        }
        Request::SaveState { job, tenant, state, at } => {
            Answer::Saved(saved_state::save(session, unit, job, tenant.as_deref(), state, *at).await?)
        }
        Request::ForgetState { job, tenant } => {
            Answer::Known(saved_state::forget(session, unit, job, tenant.as_deref()).await?)
        }
        Request::Progress { job, tenant, progress, at } => {
            Answer::Known(progress::tell(session, unit, job, tenant.as_deref(), progress, *at).await?)
        }
    })
}

/// Whether a job that was taken in is this tenant's.
fn is_of(unit: &Unit, seq: i64, tenant: Option<&str>) -> bool {
    tenant.is_none() || unit.job(seq).is_some_and(|job| job.tenant.as_deref() == tenant)
}
