//! Pause and resume: a job is held back from being claimed, in whichever state it is.

use super::{Done, find};
use crate::control::{Refusal, Target};
use crate::engine::session::{Args, Session};
use crate::engine::unit::Unit;
use crate::{Claim, Ring, StoreError, sql};
use turnstone_domain::JobState;
use turnstone_domain::event::{EventBody, Reason, Resumed};

pub(in crate::engine) async fn pause(
    session: &mut Session,
    unit: &mut Unit,
    target: &Target,
    reason: Option<&str>,
) -> Done<JobState> {
    let seq = match find(session, unit, target).await? {
        Ok(seq) => seq,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let Some(job) = unit.job(seq) else { return Ok(Err(Refusal::NoJob)) };
    let (state, held, token) = (job.state, job.held, job.lease_token.clone());
    if state.is_terminal() {
        return Ok(Err(Refusal::Ended(state)));
    }
    if !held {
        hold(session, unit, seq, true).await?;
        unit.note(seq, EventBody::AgentPaused(Reason { reason: reason.map(str::to_owned) }), target.at)?;
        // The holder of the lease is notified now, or sees it when it looks at its leases.
        unit.rings.extend(token.map(Ring::Asked));
        unit.flush(session).await?;
    }
    Ok(Ok(state))
}

pub(in crate::engine) async fn resume(
    session: &mut Session,
    unit: &mut Unit,
    target: &Target,
    approved: Option<bool>,
    comment: Option<&str>,
) -> Done<JobState> {
    let seq = match find(session, unit, target).await? {
        Ok(seq) => seq,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let Some(job) = unit.job(seq) else { return Ok(Err(Refusal::NoJob)) };
    let (state, held) = (job.state, job.held);
    if state.is_terminal() {
        return Ok(Err(Refusal::Ended(state)));
    }
    if !held {
        return Ok(Err(Refusal::NotPaused));
    }
    hold(session, unit, seq, false).await?;
    // One that lost too many leases gets further chances, alone.
    let job = unit.change_job(seq)?;
    job.lapses = job.lapses.min(Claim::LAPSES_IN_COMPANY);
    let resumed = Resumed { approved, comment: comment.map(str::to_owned) };
    unit.note(seq, EventBody::AgentResumed(resumed), target.at)?;
    unit.rings.push(Ring::Available);
    unit.flush(session).await?;
    Ok(Ok(state))
}

/// Holds a job back, or lets it be claimed again.
pub(in crate::engine) async fn hold(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    held: bool,
) -> Result<(), StoreError> {
    unit.change_job(seq)?.held = held;
    let values = [seq.into(), i64::from(held).into()];
    session.execute("pause or resume a job", &sql::UPDATE_JOB_HELD, Args::Values(&values)).await.map(|_| ())
}
