//! The writes of tenants' limits. A wider limit may let jobs start.

use super::super::rows::TenantLimitsRow;
use super::super::session::{Args, Session};
use super::super::statement::{execute, read};
use super::super::tenants::setup;
use super::super::unit::Unit;
use crate::{Ring, StoreError, TenantLimits, TenantSetup, sql};
use serde_json::json;
use turnstone_domain::digest;

/// Sets the limits of a tenant. `before` receives the digest of the former ones.
pub(in super::super) async fn set_up(
    session: &mut Session,
    unit: &mut Unit,
    (setup, before): (&TenantSetup, &mut Option<String>),
) -> Result<(), StoreError> {
    *before = digest_of(session, &setup.tenant).await?;
    unit.rings.push(Ring::Available);
    let TenantLimits { max_concurrency, max_queue_depth, max_scheduled, max_enqueue_rate } = setup.limits;
    let (rate, period_ms) = max_enqueue_rate.map(|rate| (rate.limit, rate.period_ms)).unzip();
    let row = TenantLimitsRow {
        tenant: setup.tenant.clone(),
        max_concurrency,
        max_queue_depth,
        max_scheduled,
        enqueue_rate: rate,
        enqueue_period_ms: period_ms,
        reason: setup.reason.clone(),
        updated_at: setup.updated_at,
    };
    let (action, text) = ("set limits of a tenant", &sql::INSERT_TENANT_LIMITS);
    execute(session, action, text, vec![row], &[]).await.map(|_| ())
}

/// Returns the digest of a tenant's limits, if it has any.
async fn digest_of(session: &mut Session, tenant: &str) -> Result<Option<String>, StoreError> {
    let (action, text) = ("read limits of a tenant", &sql::SELECT_TENANT_LIMITS);
    let known = read(session, action, text, &[tenant.into()], setup).await?.pop();
    Ok(known.map(|TenantSetup { limits, .. }| {
        let rate = limits.max_enqueue_rate.map(|rate| [rate.limit, rate.period_ms]);
        digest::of_json(&json!([limits.max_concurrency, limits.max_queue_depth, limits.max_scheduled, rate]))
    }))
}

/// Removes the limits of a tenant; returns whether there were any. `before` receives their digest.
pub(in super::super) async fn forget(
    session: &mut Session,
    unit: &mut Unit,
    (tenant, before): (&str, &mut Option<String>),
) -> Result<bool, StoreError> {
    *before = digest_of(session, tenant).await?;
    unit.rings.push(Ring::Available);
    let (action, text) = ("forget limits of a tenant", &sql::DELETE_TENANT_LIMITS);
    Ok(session.execute(action, text, Args::Values(&[tenant.into()])).await? > 0)
}
