//! What operators allow tenants: the writes.

use super::super::session::{Arg, Args, Session};
use super::super::unit::Unit;
use crate::{Ring, StoreError, TenantLimits, TenantSetup, sql};
use turnstone_domain::Ids;

/// What is asked.
pub(in super::super) enum Request {
    SetUp(Box<TenantSetup>),
    Forget(String),
}

/// Whether something was written.
pub(in super::super) type Answer = bool;

/// Does what is asked. A wider limit may let jobs start.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    unit: &mut Unit,
    request: &Request,
    _ids: &dyn Ids,
) -> Result<Answer, StoreError> {
    unit.rings.push(Ring::Available);
    let written = match request {
        Request::SetUp(setup) => {
            let TenantLimits { max_concurrency, max_queue_depth, max_scheduled, max_enqueue_rate } =
                setup.limits;
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
            let text = &sql::INSERT_TENANT_LIMITS;
            session.execute("set limits of a tenant", text, Args::Values(&values)).await?
        }
        Request::Forget(tenant) => {
            let values = [tenant.as_str().into()];
            let text = &sql::DELETE_TENANT_LIMITS;
            session.execute("forget limits of a tenant", text, Args::Values(&values)).await?
        }
    };
    Ok(written > 0)
}
