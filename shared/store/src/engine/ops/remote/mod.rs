//! The writes of workers in any language, over HTTP: acknowledgements, failures, beats, saved states, progress.

mod activate;
mod heartbeat;
mod lease;
mod progress;
mod report;
mod saved_state;

pub(in super::super) use activate::apply as activate;
pub(in super::super) use heartbeat::apply as heartbeat;
pub(in super::super) use lease::{is_stale, token as lease_token};
pub(in super::super) use progress::tell as tell_progress;
pub(in super::super) use report::apply as report;
pub(super) use report::{Policies, failure, retry_policies};
pub(in super::super) use saved_state::{forget as forget_state, save as save_state};

use super::super::rows::JobRow;
use super::super::session::{Args, Session};
use super::super::unit::Unit;
use super::super::writer::Transaction;
use super::claim;
use crate::{ClaimRequest, Directive, StoreError, sql};

/// Claims plain jobs; returns their rows, and whether asking again may give more.
pub(in super::super) async fn fetch(
    tx: &mut Transaction,
    request: &ClaimRequest,
) -> Result<(Vec<JobRow>, bool), StoreError> {
    let Some(taken) = claim::take(tx, request).await? else { return Ok((Vec::new(), false)) };
    let Transaction { session, unit, .. } = tx;
    taken.broken.discard(unit, request.now)?;
    unit.flush(session).await?;
    let whole = taken.seqs.into_iter().filter(|seq| !taken.broken.has(*seq));
    let rows = whole.filter_map(|seq| unit.job(seq).cloned()).collect();
    Ok((rows, taken.busy))
}

/// Stores a directive for a worker's next beat; returns whether the worker is known.
pub(in super::super) async fn direct(
    session: &mut Session,
    worker: &str,
    directive: Option<Directive>,
) -> Result<bool, StoreError> {
    let values = [worker.into(), directive.map(Directive::as_str).into()];
    let (action, text) = ("direct a worker", &sql::UPDATE_WORKER_DIRECTIVE);
    Ok(session.execute(action, text, Args::Values(&values)).await? > 0)
}

/// Returns true when a job that was taken in is this tenant's.
fn is_of(unit: &Unit, seq: i64, tenant: Option<&str>) -> bool {
    tenant.is_none() || unit.job(seq).is_some_and(|job| job.tenant.as_deref() == tenant)
}
