//! `POST /ojs/v1/webhooks/subscriptions/{id}/deliveries/{delivery}/redeliver`: sends a delivery once more, under the
//! same id.

use super::{DeliveryReply, find};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segments, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use turnstone_ojs::OjsError;

/// Sends a delivery again, in any state, with all its attempts.
#[utoipa::path(
    post, path = "/ojs/v1/webhooks/subscriptions/{id}/deliveries/{delivery}/redeliver", tag = "webhooks",
    security(("tenant" = ["operator"])),
    params(
        ("id" = String, Path, description = "The subscription."),
        ("delivery" = String, Path, description = "The delivery."),
    ),
    responses((status = 202, description = "It is on its way.", body = DeliveryReply)),
)]
pub(crate) async fn redeliver(
    State(app): State<Shared>,
    Segments(id, delivery): Segments,
    tenant: Tenant,
) -> Answer {
    let webhook = find(&app, &id, &tenant).await?;
    let found = app.api.store.webhooks.redeliver(&webhook.id, &delivery, app.api.clock.now()).await?;
    match found {
        Some(found) => Ok(reply::json(StatusCode::ACCEPTED, &DeliveryReply { delivery: found.into() })),
        None => Err(OjsError::not_found("delivery", &delivery).into()),
    }
}
