//! `GET /ojs/v1/webhooks/subscriptions`: the subscriptions.

use super::Subscription;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;
use turnstone_domain::RawJson;
use turnstone_domain::RawObject;
use turnstone_ojs::subscription_to_json;
use utoipa::ToSchema;

/// Subscriptions, oldest first.
#[derive(ToSchema)]
#[schema(as = WebhookSubscriptions)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Subscriptions {
    subscriptions: Vec<Subscription>,
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
    let shown: Vec<String> =
        webhooks.iter().map(|webhook| subscription_to_json(webhook, false).to_raw().into_text()).collect();
    let mut reply = RawObject::new();
    let list =
        RawJson::from_text(format!("[{}]", shown.join(","))).unwrap_or_else(|_| RawJson::empty_array());
    reply.insert("subscriptions", list);
    reply.insert("count", shown.len());
    Ok(reply::ok(&reply))
}
