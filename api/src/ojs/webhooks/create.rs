//! `POST /ojs/v1/webhooks/subscriptions`: subscribes an address to events.

use super::made_secret;
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use turnstone_domain::webhook::Webhook;
use turnstone_ojs::{NewSubscription, SubscriptionReply, read_new};

/// Subscribes to events. Only this response contains the secret.
#[utoipa::path(
    post, path = "/ojs/v1/webhooks/subscriptions", operation_id = "create_webhook", tag = "webhooks",
    security(("tenant" = ["operator"])),
    params(("X-OJS-Tenant" = Option<String>, Header, description = "Only events of this tenant's jobs are delivered.")),
    request_body = NewSubscription,
    responses(
        (status = 201, description = "It is made.", body = SubscriptionReply),
        (status = 409, description = "The tenant has as many webhooks as it may have.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn create(State(app): State<Shared>, tenant: Tenant, JsonBytes(body): JsonBytes) -> Answer {
    let requested = read_new(&body, app.api.options.private_webhooks)?;
    let (ids, now) = (app.api.ids.as_ref(), app.api.clock.now());
    let webhook = Webhook {
        id: format!("sub_{}", ids.next()),
        tenant: tenant.into_name(),
        url: requested.url,
        events: requested.events,
        filter: requested.filter.map(Into::into).unwrap_or_default(),
        metadata: requested.metadata.unwrap_or_default(),
        secret: requested.secret.unwrap_or_else(|| made_secret(ids)),
        old_secret: None,
        active: requested.active.unwrap_or(true),
        since: 0,
        created_at: now,
        updated_at: now,
    };
    app.api.store.webhooks.create_webhook(webhook.clone(), app.api.options.caps.webhooks).await?;
    Ok(reply::json(StatusCode::CREATED, &SubscriptionReply::of(&webhook, true)))
}
