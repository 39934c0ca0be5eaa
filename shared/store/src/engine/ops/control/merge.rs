//! Merge: two branches of one root become a new one.

use super::branch::{self, Wanted};
use super::copy::{self, Past, Segment};
use super::{Done, find};
use crate::control::{Merge, Merged, Refusal, Strategy, Target};
use crate::engine::rows;
use crate::engine::session::Session;
use crate::engine::statement::read;
use crate::engine::unit::Unit;
use crate::{StoreError, sql};
use std::collections::BTreeMap;
use turnstone_domain::Ids;
use turnstone_domain::event::{EventBody, Joined};
use turnstone_domain::memory::BEFORE;

/// One of the two branches of a merge.
struct MergeSide {
    seq: i64,
    past: Option<Past>,
    /// Its complete turns.
    turns: i64,
    /// The content of each turn.
    contents: BTreeMap<i64, String>,
}

pub(in crate::engine) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    target: &Target,
    merge: &Merge,
    ids: &dyn Ids,
) -> Done<Merged> {
    let seq = match find(session, unit, target).await? {
        Ok(seq) => seq,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let root = branch::root(session, seq).await?;
    let ours = match side(session, unit, target, (seq, root), &merge.ours).await? {
        Ok(side) => side,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let theirs = match side(session, unit, target, (seq, root), &merge.theirs).await? {
        Ok(side) => side,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let last = ours.turns.min(theirs.turns);
    let parted = (1..=last).find(|turn| ours.contents.get(turn) != theirs.contents.get(turn));
    let parted = parted.unwrap_or(last + 1);
    let conflicts: Vec<i64> =
        (parted..=last).filter(|turn| ours.contents.get(turn) != theirs.contents.get(turn)).collect();
    let (like, parts) = match merge.strategy {
        Strategy::Ours => (ours.seq, vec![(&ours, 1)]),
        Strategy::Theirs => (theirs.seq, vec![(&theirs, 1)]),
        Strategy::Union => (ours.seq, vec![(&ours, 1), (&theirs, parted)]),
    };
    let (mut turn, mut segments, mut contents) = (1, Vec::new(), Vec::new());
    for (side, from) in parts {
        let until = side.turns + 1;
        // What was recalled when the engagement began is the first one's alone.
        let (first, shift) = (if segments.is_empty() { BEFORE } else { from }, turn - from);
        segments.extend(side.past.map(|past| Segment { past, from: first, until, shift }));
        contents.extend(side.contents.range(from..).map(|(_, content)| content.clone()));
        turn += until - from;
    }
    let wanted = Wanted {
        like,
        root,
        name: None,
        segments,
        at_turn: turn,
        position: None,
        contents,
        held: true,
        job: &merge.job,
        engagement: &merge.engagement,
        by: target.by.as_deref(),
        at: target.at,
    };
    let made = match branch::make(session, unit, wanted, ids).await? {
        Ok(made) => made,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let joined = Joined {
        merged_id: made.id.clone(),
        job_id: made.job.clone(),
        branch_a: merge.ours.clone(),
        branch_b: merge.theirs.clone(),
        strategy: merge.strategy.as_str().to_owned(),
        conflicts: conflicts.clone(),
    };
    unit.note(seq, EventBody::AgentMerged(joined), target.at)?;
    unit.flush(session).await?;
    Ok(Ok(Merged { branch: made, conflicts }))
}

/// Returns the branch that a name means. A job that never ran has no branches, so any name means the job itself.
async fn side(
    session: &mut Session,
    unit: &mut Unit,
    target: &Target,
    (seq, root): (i64, i64),
    name: &str,
) -> Done<MergeSide> {
    let seq = match branch::named(session, root, name).await? {
        Some(job) => match find(session, unit, &Target { job, ..target.clone() }).await? {
            Ok(seq) => seq,
            Err(_) => return Ok(Err(Refusal::NoBranch(name.to_owned()))),
        },
        None if known(session, name).await? => return Ok(Err(Refusal::OtherRoot(name.to_owned()))),
        None if unit.job(seq).is_some_and(|job| job.attempt == 0) => seq,
        None => return Ok(Err(Refusal::NoBranch(name.to_owned()))),
    };
    if unit.engagement_of(seq).is_some_and(|row| row.inputs > 1) {
        return Ok(Err(Refusal::SeveralInputs));
    }
    let past = branch::past(unit, seq);
    let turns = unit.engagement_of(seq).map_or(0, |row| row.engagement.turns);
    let contents = match past {
        Some(past) => copy::contents(session, past, turns + 1).await?,
        None => BTreeMap::new(),
    };
    Ok(Ok(MergeSide { seq, past, turns, contents }))
}

async fn known(session: &mut Session, id: &str) -> Result<bool, StoreError> {
    let values = [id.into()];
    let found = read(session, "look for a branch", &sql::SELECT_BRANCH_EXISTS, &values, |row| {
        rows::get::<String>(row, "id")
    });
    Ok(!found.await?.is_empty())
}
