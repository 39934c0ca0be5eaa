//! Fork: a new job continues from a turn of this one, with everything before it.

use super::branch::{self, Wanted};
use super::copy::{self, Segment};
use super::{Done, find};
use crate::control::{Branch, Fork, Refusal, Target};
use crate::engine::session::Session;
use crate::engine::unit::Unit;
use turnstone_domain::Ids;
use turnstone_domain::event::{Branched, EventBody};
use turnstone_domain::memory::BEFORE;

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
    if unit.engagement_of(seq).is_some_and(|row| row.inputs > 1) {
        return Ok(Err(Refusal::SeveralInputs));
    }
    let stands = unit.job(seq).and_then(|job| job.position.clone());
    let newest = stands.as_ref().map_or(1, |position| position.turn);
    let at_turn = fork.at_turn.unwrap_or(newest).max(1);
    if at_turn > newest {
        return Ok(Err(Refusal::NoTurn { newest }));
    }
    let past = branch::past(unit, seq);
    let contents = match past {
        Some(past) => copy::contents(session, past, at_turn).await?.into_values().collect(),
        None => Vec::new(),
    };
    let segments =
        past.map(|past| Segment { past, from: BEFORE, until: at_turn, shift: 0 }).into_iter().collect();
    let wanted = Wanted {
        like: seq,
        root: branch::root(session, seq).await?,
        name: fork.name.as_deref(),
        segments,
        at_turn,
        position: stands.filter(|position| position.turn == at_turn),
        contents,
        // The effects of a plain job are not on record, so its copy does not run until an operator resumes it.
        held: past.is_none(),
        job: &fork.job,
        engagement: &fork.engagement,
        by: target.by.as_deref(),
        at: target.at,
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
