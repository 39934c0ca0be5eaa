//! `DELETE /budgets/{name}`: deletes a shared budget, which then limits nothing.

use super::named;
use crate::api::Shared;
use crate::audit::Operator;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// A budget that was deleted.
#[derive(Serialize, ToSchema)]
struct Forgotten {
    name: String,
    deleted: bool,
}

/// Deletes a shared budget. Its spending stays in the ledger, and counts again when the budget is made again.
#[utoipa::path(
    delete, path = "/budgets/{name}", operation_id = "delete_budget", tag = "budgets",
    security(("fleet" = ["operator"])),
    params(("name" = String, Path, description = "The budget.", example = "tenant/acme")),
    responses((status = 200, description = "It is forgotten.", body = Forgotten)),
)]
pub(crate) async fn forget(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    operator: Operator,
) -> Answer {
    let name = named(&name, &tenant)?.to_string();
    if !app.api.store.budgets.forget(&name, tenant.name(), app.api.clock.now()).await? {
        return Err(OjsError::not_found("budget", &name).into());
    }
    operator.did("budget.forget", &name, "forgotten");
    Ok(reply::ok(&Forgotten { name, deleted: true }))
}
