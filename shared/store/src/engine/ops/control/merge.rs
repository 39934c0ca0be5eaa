//! Merge: two branches of one root become a new one.

use super::super::past::{Segment, Twin};
use super::branch::{self, Wanted};
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

/// One of the two branches of a merge.
struct MergeSide {
    seq: i64,
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
    let (first, behind) = match merge.strategy {
        Strategy::Ours => (&ours, None),
        Strategy::Theirs => (&theirs, None),
        Strategy::Union => (&ours, Some(parted)),
    };
    let mut contents: Vec<String> = first.contents.range(1..).map(|(_, content)| content.clone()).collect();
    let behind = behind.map(|from| {
        contents.extend(theirs.contents.range(from..).map(|(_, content)| content.clone()));
        Segment { seq: theirs.seq, from, until: theirs.turns + 1 }
    });
    let wanted = Wanted {
        twin: Twin {
            like: first.seq,
            job: &merge.job,
            engagement: &merge.engagement,
            by: target.by.as_deref(),
            at: target.at,
        },
        root,
        name: None,
        until: first.turns + 1,
        behind,
        contents,
        held: true,
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
        None if known(session, name, target).await? => return Ok(Err(Refusal::OtherRoot(name.to_owned()))),
        None if unit.job(seq).is_some_and(|job| job.attempt == 0) => seq,
        None => return Ok(Err(Refusal::NoBranch(name.to_owned()))),
    };
    if unit.engagement_of(seq).is_some_and(|row| row.inputs > 1) {
        return Ok(Err(Refusal::SeveralInputs));
    }
    let turns = unit.engagement_of(seq).map_or(0, |row| row.engagement.turns);
    let contents = branch::contents(session, seq, turns + 1).await?;
    Ok(Ok(MergeSide { seq, turns, contents }))
}

/// Returns true if this is the id of a branch or a job that the principal of the request may see.
async fn known(session: &mut Session, id: &str, target: &Target) -> Result<bool, StoreError> {
    let values = [id.into(), target.tenant.as_deref().into()];
    let found = read(session, "look for a branch", &sql::SELECT_BRANCH_EXISTS, &values, |row| {
        rows::get::<String>(row, "id")
    });
    Ok(!found.await?.is_empty())
}
