//! `GET /freeze`: the freezes that hold.

use super::ShownFreeze;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// Freezes that hold.
#[derive(Serialize, ToSchema)]
pub(crate) struct FreezeList {
    /// Of the fleet and of tenants.
    pub freezes: Vec<ShownFreeze>,
}

/// Lists the freezes that hold: of the fleet and of all tenants, or those that concern the tenant.
#[utoipa::path(
    get, path = "/freeze", operation_id = "list_freezes", tag = "fleet",
    security(("tenant" = ["viewer"])),
    responses((status = 200, description = "The freezes.", body = FreezeList)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant) -> Answer {
    let mut all = app.api.store.freezes.all().await?;
    if let Some(own) = tenant.name() {
        all.retain(|freeze| freeze.tenant.as_deref().is_none_or(|tenant| tenant == own));
    }
    Ok(reply::ok(&FreezeList { freezes: all.into_iter().map(ShownFreeze::from).collect() }))
}
