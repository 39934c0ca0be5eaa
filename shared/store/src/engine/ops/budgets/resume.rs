//! Jobs that waited for a budget resume.

use crate::engine::rows::{JobRow, get};
use crate::engine::session::{Arg, Args, Row, Session, limit as row_limit};
use crate::engine::statement::{execute, read};
use crate::engine::unit::Unit;
use crate::{Ring, StoreError, sql};
use turnstone_domain::event::{EventBody, Reason};
use turnstone_domain::state::Trigger;
use turnstone_domain::{JobState, Timestamp};

/// At most this many resume in the transaction that raises their budget; the scheduler resumes the others.
const AT_ONCE: usize = 200;

/// Which budget was changed.
pub(super) enum Of<'a> {
    /// A shared one, by its name.
    Shared(&'a str),
    /// That of an engagement, by its number.
    Engagement(i64),
}

/// Resumes jobs that wait for a budget, whether they are parked or wait for their next attempt.
pub(super) async fn open(
    session: &mut Session,
    unit: &mut Unit,
    of: Of<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let (seq, name) = match of {
        Of::Shared(name) => (None, Some(name)),
        Of::Engagement(seq) => (Some(seq), None),
    };
    let values = [now.0.into(), Arg::Int(seq), name.into()];
    let waiting =
        session.execute("resume jobs", &sql::UPDATE_OPEN_BUDGET_WAITS, Args::Values(&values)).await?;
    if waiting == 0 {
        return Ok(());
    }
    unit.rings.push(Ring::Due);
    let mut own = Unit::default();
    resume_due(session, &mut own, now, AT_ONCE).await?;
    unit.absorb(own);
    Ok(())
}

/// Lets jobs go on that wait for a budget which limits nothing any more. Every change of a budget does that for its own; this
/// finds what was missed.
pub(in super::super) async fn find_lost(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
) -> Result<usize, StoreError> {
    let values = [now.0.into()];
    let (action, text) = ("look for lost waits", &sql::UPDATE_LOST_BUDGET_WAITS);
    let found = session.execute(action, text, Args::Values(&values)).await?;
    unit.rings.extend((found > 0).then_some(Ring::Due));
    Ok(usize::try_from(found).unwrap_or(usize::MAX))
}

/// `pending → available` and `retryable → available` for jobs that waited for a budget which was raised, or has begun
/// anew. What a job that was claimed since had waited for is forgotten.
pub(in super::super) async fn resume_due(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let values = [now.0.into(), row_limit(limit).into()];
    let decode = |row: &Row| Ok((JobRow::decode(row)?, get::<i64>(row, "waits_since")?));
    let waits =
        read(session, "look for raised budgets", &sql::LOCK_DUE_BUDGET_WAITS, &values, decode).await?;
    if waits.is_empty() {
        return Ok(0);
    }
    let seqs: Vec<i64> = waits.iter().map(|(job, _)| job.seq).collect();
    let (still, _): (Vec<_>, Vec<_>) = waits.into_iter().partition(|(job, since)| job.attempt == *since);
    let going: Vec<(i64, Trigger)> = still
        .iter()
        .filter_map(|(job, _)| match job.state {
            JobState::Pending => Some((job.seq, Trigger::Activate)),
            JobState::Retryable => Some((job.seq, Trigger::RetryDue)),
            _ => None,
        })
        .collect();
    unit.take_in(session, still.into_iter().map(|(job, _)| job).collect()).await?;
    for (seq, trigger) in &going {
        unit.change_job(*seq)?.step(*trigger, now)?;
        unit.note(*seq, EventBody::JobAvailable(Reason::of("budget")), now)?;
        unit.rings.push(Ring::Available);
    }
    unit.flush(session).await?;
    execute(session, "forget what jobs waited for", &sql::DELETE_BUDGET_WAITS, seqs, &[]).await?;
    Ok(going.len())
}
