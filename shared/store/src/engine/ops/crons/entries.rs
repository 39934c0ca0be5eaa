//! Entries are made, changed and forgotten.

use super::super::super::crons::entry;
use super::super::super::session::{Arg, Args, Session};
use super::super::super::statement::read;
use super::super::super::unit::Unit;
use super::owner;
use crate::{Ring, StoreError, sql};
use turnstone_domain::Timestamp;
use turnstone_domain::cron::{CronChange, CronEntry, Missed, Overlap};

async fn find(
    session: &mut Session,
    name: &str,
    tenant: Option<&str>,
) -> Result<Option<CronEntry>, StoreError> {
    let values = [name.into(), tenant.into(), Arg::Int(None)];
    let found = read(session, "read a cron entry", &sql::SELECT_CRONS, &values, entry).await?;
    Ok(found.into_iter().next())
}

/// Makes or replaces an entry; returns whether it is new.
pub(in super::super::super) async fn put(
    session: &mut Session,
    unit: &mut Unit,
    entry: &CronEntry,
) -> Result<bool, StoreError> {
    let known = find(session, &entry.name, Some(owner(entry))).await?.is_some();
    let values = [
        owner(entry).into(),
        entry.name.as_str().into(),
        entry.expression.as_str().into(),
        entry.timezone.as_str().into(),
        entry.overlap.as_str().into(),
        entry.missed.as_str().into(),
        i64::from(entry.enabled).into(),
        entry.template.as_str().into(),
        entry.description.as_deref().into(),
        Arg::Int(entry.next_run_at.map(|at| at.0)),
        entry.updated_at.0.into(),
    ];
    session.execute("write a cron entry", &sql::INSERT_CRON, Args::Values(&values)).await?;
    unit.rings.push(Ring::Due);
    Ok(!known)
}

/// Changes an entry; returns whether there is one.
pub(in super::super::super) async fn change(
    session: &mut Session,
    unit: &mut Unit,
    (name, tenant): (&str, Option<&str>),
    change: &CronChange,
    at: Timestamp,
) -> Result<bool, StoreError> {
    let Some(known) = find(session, name, tenant).await? else { return Ok(false) };
    let values = [
        owner(&known).into(),
        name.into(),
        change.expression.as_deref().into(),
        change.timezone.as_deref().into(),
        change.overlap.map(Overlap::as_str).into(),
        change.missed.map(Missed::as_str).into(),
        Arg::Int(change.enabled.map(i64::from)),
        change.template.as_deref().into(),
        change.description.as_deref().into(),
        i64::from(change.next_run_at.is_some()).into(),
        Arg::Int(change.next_run_at.flatten().map(|at| at.0)),
        at.0.into(),
    ];
    let changed = session.execute("change a cron entry", &sql::UPDATE_CRON, Args::Values(&values)).await?;
    unit.rings.push(Ring::Due);
    Ok(changed > 0)
}

/// Forgets an entry and its history.
pub(in super::super::super) async fn forget(
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
