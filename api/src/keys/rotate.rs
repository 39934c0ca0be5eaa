//! `POST /keys/{id}/rotate`: gives a key a new secret.

use super::{NewKey, ShownKey, new_secret};
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use serde::Deserialize;
use turnstone_ojs::request::between;
use turnstone_ojs::{OjsError, request};
use turnstone_store::Rotation;
use utoipa::ToSchema;

/// The longest time for which an old secret is accepted, in seconds: 30 days.
const LONGEST_GRACE: i64 = 30 * 24 * 60 * 60;

/// The terms of a rotation.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"grace_seconds": 3600}))]
struct RotateRequest {
    /// The old secret is accepted for so many seconds; 0 by default, at most 30 days.
    #[serde(default, deserialize_with = "between::<_, 0, LONGEST_GRACE>")]
    grace_seconds: Option<i64>,
}

/// Gives a key a new secret. Only this response contains it.
#[utoipa::path(
    post, path = "/keys/{id}/rotate", operation_id = "rotate_key", tag = "access",
    security(("tenant" = ["admin"])),
    params(("id" = String, Path, description = "The key.")),
    request_body = Option<RotateRequest>,
    responses(
        (status = 200, description = "The key, with its new secret.", body = NewKey),
        (status = 404, description = "There is no living key of this id.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn rotate(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let RotateRequest { grace_seconds } = request::read_if_any(&body)?;
    let grace = grace_seconds.unwrap_or(0);
    let (now, (secret, hash)) = (app.api.clock.now(), new_secret()?);
    let (id, tenant) = (id, tenant.into_name());
    let rotation = Rotation { id: id.clone(), tenant, hash, old_until: now.plus_ms(grace * 1000), at: now };
    let key = app.api.store.keys.rotate(rotation).await?.ok_or_else(|| OjsError::not_found("key", &id))?;
    app.principals.keyring.refresh().await?;
    Ok(reply::ok(&NewKey { key: ShownKey::of(&key, now), secret }))
}
