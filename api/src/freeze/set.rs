//! `PUT /freeze`: freezes the fleet or a tenant.

use super::{ShownFreeze, scope};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Tenant};
use axum::extract::State;
use serde::Deserialize;
use turnstone_ojs::{OjsError, request};
use turnstone_store::Freeze;
use utoipa::ToSchema;

/// The most characters of a reason.
const REASON_CHARACTERS: usize = 1_000;

/// The terms of a freeze.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"tenant": "acme", "reason": "a tool sends wrong mails"}))]
struct FreezeRequest {
    /// The tenant; left out, the principal's tenant or the whole fleet.
    tenant: Option<String>,
    /// At most 1000 characters.
    reason: Option<String>,
}

/// Freezes the fleet or a tenant: within a second, no turn begins a call of a model or a tool. Calls in flight end. Turns
/// wait, and continue when the freeze is lifted.
#[utoipa::path(
    put, path = "/freeze", operation_id = "freeze", tag = "fleet",
    security(("tenant" = ["operator"])),
    request_body = Option<FreezeRequest>,
    responses((status = 200, description = "It holds.", body = ShownFreeze)),
)]
pub(crate) async fn set(State(app): State<Shared>, tenant: Tenant, JsonBytes(body): JsonBytes) -> Answer {
    let FreezeRequest { tenant: named, reason } = request::read_if_any(&body)?;
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > REASON_CHARACTERS) {
        let why = format!("must have at most {REASON_CHARACTERS} characters");
        return Err(OjsError::invalid_request("reason", why).into());
    }
    let frozen_by = tenant.principal.identity.clone().unwrap_or_else(|| tenant.principal.name.clone());
    let freeze = Freeze { tenant: scope(&tenant, named)?, reason, frozen_by, frozen_at: app.api.clock.now() };
    app.api.store.freezes.set(freeze.clone()).await?;
    Ok(reply::ok(&ShownFreeze::from(freeze)))
}
