//! `GET /ojs/v1/webhooks/subscriptions`: the subscriptions.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;
use serde::Serialize;
use turnstone_ojs::SubscriptionBody;
use utoipa::ToSchema;

/// Subscriptions, oldest first.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookSubscriptions)]
pub(crate) struct Subscriptions {
    subscriptions: Vec<SubscriptionBody>,
    count: usize,
}

/// The subscriptions to events.
#[utoipa::path(
    get, path = "/ojs/v1/webhooks/subscriptions", operation_id = "list_webhooks", tag = "webhooks",
    security(("tenant" = ["viewer"])),
    params(("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's.")),
    responses((status = 200, description = "All subscriptions, without their secrets.", body = Subscriptions)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant) -> Answer {
    let webhooks = app.api.store.webhooks.webhooks(tenant.name()).await?;
    let subscriptions: Vec<_> = webhooks.iter().map(SubscriptionBody::from).collect();
    Ok(reply::ok(&Subscriptions { count: subscriptions.len(), subscriptions }))
}
