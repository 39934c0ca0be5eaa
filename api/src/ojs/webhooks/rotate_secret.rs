//! `POST /ojs/v1/webhooks/subscriptions/{id}/rotate-secret`: replaces the secret; the old one still signs for a while
//! beside it.

use super::{made_secret, missing};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::webhook::WebhookChange;
use turnstone_ojs::{Rotation, SubscriptionReply, request};

/// Replaces the secret. Only this response contains the new one.
#[utoipa::path(
    post, path = "/ojs/v1/webhooks/subscriptions/{id}/rotate-secret", tag = "webhooks",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The subscription.")),
    request_body = Option<Rotation>,
    responses((status = 200, description = "The new secret signs.", body = SubscriptionReply)),
)]
pub(crate) async fn rotate_secret(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let rotation: Rotation = request::read_if_any(&body)?;
    let (now, grace_ms) = (app.api.clock.now(), rotation.grace_ms());
    let secret = rotation.secret.unwrap_or_else(|| made_secret(app.api.ids.as_ref()));
    let change = WebhookChange { secret: Some((secret, now.plus_ms(grace_ms))), ..WebhookChange::default() };
    match app.api.store.webhooks.change_webhook(&id, tenant.name(), change, now).await? {
        Some(webhook) => {
            let mut reply = SubscriptionReply::of(&webhook, true);
            if let Some((_, until)) = webhook.old_secret {
                reply.old_secret_until = Some(until.to_rfc3339());
            }
            Ok(reply::ok(&reply))
        }
        None => Err(missing(&id).into()),
    }
}
