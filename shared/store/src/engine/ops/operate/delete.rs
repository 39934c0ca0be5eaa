//! A dead letter goes, with everything that belongs to it.

use super::super::prune;
use crate::engine::session::Session;
use crate::engine::unit::Unit;
use crate::{ActionOutcome, StoreError};
use turnstone_domain::JobId;

/// Deletes one dead letter.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    id: &JobId,
    tenant: Option<&str>,
) -> Result<ActionOutcome, StoreError> {
    let Some(seq) = unit.read_job(session, id, tenant).await? else { return Ok(ActionOutcome::NotFound) };
    let Some(job) = unit.job(seq).filter(|job| job.is_dead_letter()) else {
        return Ok(ActionOutcome::NotFound);
    };
    let (previous, stream) = (job.state, job.stream);
    if !prune::sources(session, &[(seq, stream)]).await?.is_empty() {
        return Ok(ActionOutcome::Forked);
    }
    if !prune::open(session, &[(seq, stream)]).await?.is_empty() {
        return Ok(ActionOutcome::HasFurtherInputs);
    }
    prune::delete(session, &[(seq, stream)]).await?;
    Ok(ActionOutcome::Done { previous })
}
