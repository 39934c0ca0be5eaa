//! Jobs with stored data that cannot be read become dead letters that name the data.
//!
//! No version could continue them, so they are not left for another one, and not tried again. Once the row is repaired, an
//! operator has them tried again.

use super::super::rows::JobRow;
use super::super::session::Session;
use super::super::statement::read_by;
use super::super::unit::Unit;
use super::turns;
use crate::{Ring, StoreError, damage, sql, unreadable};
use std::collections::HashMap;
use turnstone_domain::{JobId, JobState, Settlement, Timestamp};

/// Discards a job that was taken in and is active; `why` names what cannot be read.
pub(in super::super) fn discard(
    unit: &mut Unit,
    seq: i64,
    why: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    tracing::error!(job = ?unit.job(seq).map(|job| &job.id), why, "a job that cannot be read is discarded");
    damage::count(why);
    turns::settle(unit, seq, &Settlement::Discard { error: unreadable(why) }, now)
}

/// Discards jobs that were just claimed, each in the given attempt.
pub(in super::super) async fn set_aside(
    session: &mut Session,
    unit: &mut Unit,
    broken: &[(JobId, i64, String)],
    now: Timestamp,
) -> Result<(), StoreError> {
    let why: HashMap<&str, (i64, &str)> =
        broken.iter().map(|(id, attempt, why)| (id.as_str(), (*attempt, why.as_str()))).collect();
    let keys = broken.iter().map(|(id, ..)| id.clone()).collect();
    let rows = read_by(session, "read jobs", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
    let jobs: Vec<(i64, String)> = rows
        .iter()
        .filter_map(|job| {
            let (attempt, why) = why.get(job.id.as_str())?;
            let is_same = job.state == JobState::Active && job.attempt == *attempt;
            is_same.then(|| (job.seq, (*why).to_owned()))
        })
        .collect();
    unit.take_in(session, rows).await?;
    for (seq, why) in jobs {
        let token = unit.job(seq).and_then(|job| job.lease_token.clone());
        discard(unit, seq, &why, now)?;
        unit.rings.extend(token.map(Ring::Revoked));
    }
    unit.flush(session).await
}
