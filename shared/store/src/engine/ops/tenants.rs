//! The writes of tenants' limits. A wider limit may let jobs start.

use super::super::session::{Arg, Args, Session};
use super::super::unit::Unit;
use crate::{Ring, StoreError, TenantLimits, TenantSetup, sql};

/// Sets the limits of a tenant.
pub(in super::super) async fn set_up(
    session: &mut Session,
    unit: &mut Unit,
    setup: &TenantSetup,
) -> Result<(), StoreError> {
    unit.rings.push(Ring::Available);
    let TenantLimits { max_concurrency, max_queue_depth, max_scheduled, max_enqueue_rate } = setup.limits;
    let (rate, period_ms) = max_enqueue_rate.map(|rate| (rate.limit, rate.period_ms)).unzip();
    let values = [
        setup.tenant.as_str().into(),
        Arg::Int(max_concurrency),
        Arg::Int(max_queue_depth),
        Arg::Int(max_scheduled),
        Arg::Int(rate),
        Arg::Int(period_ms),
        setup.reason.as_deref().into(),
        setup.updated_at.0.into(),
    ];
    let (action, text) = ("set limits of a tenant", &sql::INSERT_TENANT_LIMITS);
    session.execute(action, text, Args::Values(&values)).await.map(|_| ())
}

/// Removes the limits of a tenant; returns whether there were any.
pub(in super::super) async fn forget(
    session: &mut Session,
    unit: &mut Unit,
    tenant: &str,
) -> Result<bool, StoreError> {
    unit.rings.push(Ring::Available);
    let (action, text) = ("forget limits of a tenant", &sql::DELETE_TENANT_LIMITS);
    Ok(session.execute(action, text, Args::Values(&[tenant.into()])).await? > 0)
}
