//! `DELETE /freeze`: lifts a freeze.

use super::scope;
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// A freeze that was lifted.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct LiftedFreeze {
    /// null for the whole fleet.
    pub tenant: Option<String>,
    lifted: bool,
}

/// Lifts a freeze: turns that wait continue. The freeze of the fleet is lifted by principals of the fleet only.
#[utoipa::path(
    delete, path = "/freeze", operation_id = "lift_freeze", tag = "fleet",
    security(("tenant" = ["operator"])),
    params(("tenant" = Option<String>, Query, description = "The tenant; left out, the principal's tenant or the fleet.")),
    responses(
        (status = 200, description = "It is lifted.", body = LiftedFreeze),
        (status = 404, description = "Nothing is frozen.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn lift(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let scope = scope(&tenant, params.text("tenant").map(str::to_owned))?;
    if !app.api.store.freezes.lift(scope.as_deref()).await? {
        let what = scope.as_deref().unwrap_or("the fleet");
        return Err(OjsError::not_found("freeze of", what).into());
    }
    Ok(reply::ok(&LiftedFreeze { tenant: scope, lifted: true }))
}
