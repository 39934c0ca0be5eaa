//! Leases between checkpoints: extended while a model thinks, given back when a worker stops.

use super::super::rows;
use super::super::rows::JobRow;
use super::super::sql;
use super::super::statement::{as_json, decode_all, failed, read_by};
use super::super::unit::Unit;
use crate::{Ring, StoreError};
use serde_json::json;
use sqlx::sqlite::SqliteConnection;
use std::collections::HashSet;
use turnstone_domain::state::Trigger;
use turnstone_domain::{EventName, Lease, Timestamp};

/// Leases as the statements take them.
pub(in super::super) fn keys(leases: &[Lease]) -> Vec<(&str, &str)> {
    leases.iter().map(|lease| (lease.job.as_str(), lease.token.as_str())).collect()
}

/// The tokens among `leases` that are not in `held`.
pub(in super::super) fn lost(leases: &[Lease], held: Vec<String>) -> Vec<String> {
    let held: HashSet<String> = held.into_iter().collect();
    leases.iter().map(|lease| &lease.token).filter(|token| !held.contains(*token)).cloned().collect()
}

/// Extends leases; returns the tokens of those that are lost.
pub(in super::super) async fn extend(
    conn: &mut SqliteConnection,
    leases: &[Lease],
    until: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let rows =
        sqlx::query(sql::LEASES_EXTEND).bind(as_json(&keys(leases))?).bind(until.0).fetch_all(conn).await;
    let held =
        decode_all(&rows.map_err(failed("extend leases"))?, |row| rows::get::<String>(row, "lease_token"))?;
    Ok(lost(leases, held))
}

/// Gives jobs back that were claimed but not started.
pub(in super::super) async fn release(
    conn: &mut SqliteConnection,
    unit: &mut Unit,
    leases: &[Lease],
    now: Timestamp,
) -> Result<(), StoreError> {
    let rows = read_by(conn, "check leases", sql::JOBS_BY_LEASE, &keys(leases), JobRow::decode).await?;
    let seqs: Vec<i64> = rows.iter().map(|job| job.seq).collect();
    unit.take_in(conn, rows).await?;
    for seq in seqs {
        unit.give_back(seq)?;
        unit.change_job(seq)?.step(Trigger::Yield, now)?;
        unit.note(seq, EventName::JobYielded, json!({"reason": "not started"}), now)?;
        unit.rings.push(Ring::Available);
    }
    unit.flush(conn).await
}
