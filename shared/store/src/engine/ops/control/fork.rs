//! Fork: a new job continues from a turn of this one, with everything before it.

use super::super::past::Twin;
use super::branch::{self, Wanted};
use super::{Done, find};
use crate::control::{Branch, Fork, Refusal, Target};
use crate::engine::session::Session;
use crate::engine::unit::Unit;
use turnstone_domain::Ids;
use turnstone_domain::event::{Branched, EventBody};

pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    target: &Target,
    fork: &Fork,
    ids: &dyn Ids,
) -> Done<Branch> {
    let seq = match find(session, unit, target).await? {
        Ok(seq) => seq,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let engagement = unit.engagement_of(seq);
    if engagement.is_some_and(|row| row.inputs > 1) {
        return Ok(Err(Refusal::SeveralInputs));
    }
    // The effects of a plain job are not on record, so its copy does not run until an operator resumes it.
    let held = engagement.is_none();
    let newest = unit.job(seq).and_then(|job| job.position.as_ref()).map_or(1, |position| position.turn);
    let until = fork.at_turn.unwrap_or(newest).max(1);
    if until > newest {
        return Ok(Err(Refusal::NoTurn { newest }));
    }
    let wanted = Wanted {
        twin: Twin {
            like: seq,
            job: &fork.job,
            engagement: &fork.engagement,
            by: target.by.as_deref(),
            at: target.at,
        },
        root: branch::root(session, seq).await?,
        name: fork.name.as_deref(),
        until,
        behind: None,
        contents: branch::contents(session, seq, until).await?.into_values().collect(),
        held,
    };
    let made = match branch::make(session, unit, wanted, ids).await? {
        Ok(made) => made,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let branched = Branched {
        branch_id: made.id.clone(),
        job_id: made.job.clone(),
        at_turn: made.at_turn,
        branch_name: fork.name.clone(),
        content_id: made.content.clone(),
    };
    unit.note(seq, EventBody::AgentForked(branched), target.at)?;
    unit.flush(session).await?;
    Ok(Ok(made))
}
