//! Entries are made, changed and forgotten.

use super::super::has_room;
use super::owner;
use crate::engine::rows::{self, CronRow};
use crate::engine::session::{Arg, Args, Session};
use crate::engine::statement::{execute, read};
use crate::engine::unit::Unit;
use crate::{Ring, StoreError, sql};
use turnstone_domain::Timestamp;
use turnstone_domain::cron::{CronChange, CronEntry};

async fn find(
    session: &mut Session,
    name: &str,
    tenant: Option<&str>,
) -> Result<Option<CronEntry>, StoreError> {
    let values = [name.into(), tenant.into(), Arg::Int(None)];
    let found = read(session, "read a cron entry", &sql::SELECT_CRONS, &values, rows::decode).await?;
    Ok(found.into_iter().next())
}

/// Makes or replaces an entry; returns whether it is new.
///
/// # Errors
/// [`StoreError::TooMany`] for a new entry of a tenant that has `most` entries.
pub(in crate::engine) async fn put(
    session: &mut Session,
    unit: &mut Unit,
    entry: &CronEntry,
    most: u32,
) -> Result<bool, StoreError> {
    let known = find(session, &entry.name, Some(owner(entry))).await?.is_some();
    if !known {
        has_room(session, "crons", (&sql::SELECT_CRON_COUNT, Some(owner(entry))), most).await?;
    }
    let row = CronRow {
        tenant: owner(entry).to_owned(),
        name: entry.name.clone(),
        expression: Some(entry.expression.clone()),
        timezone: Some(entry.timezone.clone()),
        overlap_policy: Some(entry.overlap),
        missed_policy: Some(entry.missed),
        enabled: Some(entry.enabled),
        template: Some(entry.template.clone()),
        description: entry.description.clone(),
        moves: true,
        next_run_at: entry.next_run_at,
        updated_at: entry.updated_at,
    };
    execute(session, "write a cron entry", &sql::INSERT_CRON, vec![row], &[]).await?;
    unit.rings.push(Ring::Due);
    Ok(!known)
}

/// Changes an entry; returns whether there is one.
pub(in crate::engine) async fn change(
    session: &mut Session,
    unit: &mut Unit,
    (name, tenant): (&str, Option<&str>),
    change: &CronChange,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let Some(known) = find(session, name, tenant).await? else { return Ok(false) };
    let change = change.clone();
    let row = CronRow {
        tenant: owner(&known).to_owned(),
        name: name.to_owned(),
        expression: change.expression,
        timezone: change.timezone,
        overlap_policy: change.overlap,
        missed_policy: change.missed,
        enabled: change.enabled,
        template: change.template,
        description: change.description,
        moves: change.next_run_at.is_some(),
        next_run_at: change.next_run_at.flatten(),
        updated_at: at,
    };
    let changed = execute(session, "change a cron entry", &sql::UPDATE_CRON, vec![row], &[]).await?;
    unit.rings.push(Ring::Due);
    Ok(changed > 0)
}

/// Forgets an entry and its history.
pub(in crate::engine) async fn forget(
    session: &mut Session,
    name: &str,
    tenant: Option<&str>,
) -> Result<Option<CronEntry>, StoreError> {
    let Some(known) = find(session, name, tenant).await? else { return Ok(None) };
    let values = [owner(&known).into(), name.into()];
    session.execute("forget a cron entry", &sql::DELETE_CRON, Args::Values(&values)).await?;
    let values = [owner(&known).into(), name.into(), 0_i64.into()];
    session
        .execute("forget the history of a cron entry", &sql::DELETE_CRON_RUNS, Args::Values(&values))
        .await?;
    Ok(Some(known))
}
