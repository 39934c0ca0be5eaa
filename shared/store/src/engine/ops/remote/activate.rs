//! Activate: `pending → available` (OJS core §5.2).

use crate::engine::rows::{JobRow, get};
use crate::engine::session::Session;
use crate::engine::statement::read;
use crate::engine::unit::Unit;
use crate::{RemoteOutcome, Ring, StoreError, sql};
use turnstone_domain::event::{EventBody, Reason};
use turnstone_domain::state::Trigger;
use turnstone_domain::{JobId, JobState, Timestamp};

/// Makes a waiting job available. A job that waits for a review or for its user needs the answer, and a further
/// input of an engagement needs the end of those before it.
pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    id: &JobId,
    tenant: Option<&str>,
    now: Timestamp,
) -> Result<RemoteOutcome<JobRow>, StoreError> {
    let Some(seq) = unit.read_job(session, id, tenant).await? else { return Ok(RemoteOutcome::NotFound) };
    let state = unit.change_job(seq)?.state;
    if state != JobState::Pending {
        return Ok(RemoteOutcome::WrongState(state));
    }
    let (action, values) = ("look for reviews", [seq.into()]);
    let reviews =
        read(session, action, &sql::SELECT_WAITING_REVIEWS, &values, |row| get::<i64>(row, "reviews"));
    if reviews.await?.into_iter().any(|reviews| reviews > 0) {
        return Ok(RemoteOutcome::NotForYou);
    }
    let waits_for_others = unit.job(seq).is_some_and(|job| {
        let asks = job.position.as_ref().is_some_and(|position| position.asks.is_some());
        asks || (job.attempt == 0
            && job.engagement_seq.is_some_and(|engagement_seq| engagement_seq != job.seq))
    });
    if waits_for_others {
        return Ok(RemoteOutcome::NotForYou);
    }
    unit.change_job(seq)?.step(Trigger::Activate, now)?;
    unit.note(seq, EventBody::JobAvailable(Reason::of("activated")), now)?;
    unit.rings.push(Ring::Available);
    unit.flush(session).await?;
    Ok(unit.job(seq).cloned().map_or(RemoteOutcome::NotFound, RemoteOutcome::Done))
}
