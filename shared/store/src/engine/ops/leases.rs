//! Leases between checkpoints: extended while a model thinks, given back when a worker stops.

use super::super::columns::Columns;
use super::super::rows::{self, JobRow, LeaseKey};
use super::super::session::{Args, Session};
use super::super::statement::{decode_all, read_by};
use super::super::unit::Unit;
use crate::{Ring, StoreError, sql};
use std::collections::HashSet;
use turnstone_domain::event::{EventBody, Reason};
use turnstone_domain::state::Trigger;
use turnstone_domain::{Lease, Timestamp};

/// Leases as the statements take them.
pub(in super::super) fn keys(leases: &[Lease]) -> Vec<LeaseKey> {
    leases.iter().map(|lease| LeaseKey { id: lease.job.clone(), token: lease.token.clone() }).collect()
}

/// The tokens among `leases` that are not in `held`.
pub(in super::super) fn lost(leases: &[Lease], held: Vec<String>) -> Vec<String> {
    let held: HashSet<String> = held.into_iter().collect();
    leases.iter().map(|lease| &lease.token).filter(|token| !held.contains(*token)).cloned().collect()
}

/// Extends leases; returns the tokens of those that are lost.
pub(in super::super) async fn extend(
    session: &mut Session,
    leases: &[Lease],
    until: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let until = [until.0.into()];
    let text = &sql::UPDATE_LEASES;
    let args = Args::Rows(Columns::of(keys(leases), text)?, &until);
    let rows = session.rows("extend leases", text, args).await?;
    let held = decode_all(&rows, |row| rows::get::<String>(row, "lease_token"))?;
    Ok(lost(leases, held))
}

/// Ends leases without a settlement: of jobs that were claimed and not started, and at the end of a drain.
pub(in super::super) async fn release(
    session: &mut Session,
    unit: &mut Unit,
    leases: &[Lease],
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows =
        read_by(session, "check leases", &sql::LOCK_JOBS_BY_LEASE, keys(leases), JobRow::decode).await?;
    let seqs: Vec<i64> = rows.iter().map(|job| job.seq).collect();
    unit.take_in(session, rows).await?;
    for seq in seqs {
        unit.give_back(seq)?;
        unit.change_job(seq)?.step(Trigger::Yield, now)?;
        unit.note(seq, EventBody::JobYielded(Reason::of("not started")), now)?;
        unit.rings.push(Ring::Available);
    }
    unit.flush(session).await
}
