//! `DELETE /breakers/{name}`: resets a circuit breaker.

use crate::api::Shared;
use crate::audit::Operator;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_ojs::OjsError;
use turnstone_store::breakers::BreakerKey;
use utoipa::ToSchema;

/// A breaker that was reset.
#[derive(Serialize, ToSchema)]
struct Reset {
    name: String,
    state: &'static str,
}

/// Closes a circuit breaker and releases the jobs that wait for it. Every worker calls the service again within a fifth of a
/// second.
#[utoipa::path(
    delete, path = "/breakers/{name}", tag = "fleet",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The breaker.", example = "tool/researcher/web_search")),
    responses((status = 200, description = "It is closed.", body = Reset)),
)]
pub(crate) async fn reset(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    operator: Operator,
) -> Answer {
    super::whole_fleet(&tenant)?;
    let unknown = || OjsError::not_found("breaker", &name);
    let key = BreakerKey::parse(&name).ok_or_else(unknown)?;
    if !app.api.store.breakers.reset(&key, app.api.clock.now()).await? {
        return Err(unknown().into());
    }
    operator.did("breaker.reset", &name, "closed");
    Ok(reply::ok(&Reset { name, state: "closed" }))
}
