//! `GET /keys`: the keys, without their secrets.

use super::ShownKey;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// Keys, the oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct KeyList {
    /// The oldest first.
    pub keys: Vec<ShownKey>,
}

/// Lists the keys of the tenant, or all of them, without the secrets.
#[utoipa::path(
    get, path = "/keys", operation_id = "list_keys", tag = "access",
    security(("tenant" = ["admin"])),
    responses((status = 200, description = "The keys.", body = KeyList)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant) -> Answer {
    let now = app.api.clock.now();
    let all = app.api.store.keys.all().await?;
    let own = all.iter().filter(|key| tenant.name().is_none_or(|own| key.tenant.as_deref() == Some(own)));
    Ok(reply::ok(&KeyList { keys: own.map(|key| ShownKey::of(key, now)).collect() }))
}
