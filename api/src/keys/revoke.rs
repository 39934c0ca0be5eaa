//! `DELETE /keys/{id}`: revokes a key.

use super::ShownKey;
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::OjsError;

/// Revokes a key. This process refuses it at once, the others within a second; streams of events end.
#[utoipa::path(
    delete, path = "/keys/{id}", operation_id = "revoke_key", tag = "access",
    security(("tenant" = ["admin"])),
    params(("id" = String, Path, description = "The key.")),
    responses(
        (status = 200, description = "The key, which is revoked.", body = ShownKey),
        (status = 404, description = "There is no living key of this id.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn revoke(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let now = app.api.clock.now();
    let revoked = app.api.store.keys.revoke(&id, tenant.name(), now).await?;
    let revoked = revoked.ok_or_else(|| OjsError::not_found("key", &id))?;
    app.principals.keyring.refresh().await?;
    Ok(reply::ok(&ShownKey::of(&revoked, now)))
}
