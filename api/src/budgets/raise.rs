//! `POST /budgets/{name}/raise`: more of what a shared budget limits.

use super::{DAYS, RaiseRequest, named, read, rows, since};
use crate::api::Shared;
use crate::audit::Operator;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::OjsError;

/// Raises the limits of a shared budget; jobs that wait for it go on.
#[utoipa::path(
    post, path = "/budgets/{name}/raise", tag = "budgets",
    params(("name" = String, Path, description = "The budget.", example = "tenant/acme")),
    request_body(content = RaiseRequest, content_type = "application/json"),
    responses((status = 200, description = "It is raised.", body = rows::Shared, content_type = "application/json")),
)]
pub(crate) async fn raise(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    operator: Operator,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let by = read::<RaiseRequest>(&body)?.by()?;
    let name = named(&name, &tenant)?.to_string();
    let now = app.api.clock.now();
    let budgets = &app.api.store.budgets;
    if budgets.raise(&name, tenant.name(), by, now).await?.is_none() {
        return Err(OjsError::not_found("budget", &name).into());
    }
    operator.did("budget.raise", &name, "raised");
    let found = budgets.list(Some(&name), tenant.name(), since(now, DAYS)).await?.pop();
    let budget = found.ok_or_else(|| OjsError::not_found("budget", &name))?;
    Ok(reply::ok(&rows::shared(&budget)))
}
