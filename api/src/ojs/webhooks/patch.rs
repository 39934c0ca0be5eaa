//! `PATCH /ojs/v1/webhooks/subscriptions/{id}`: changes the given members.

use super::{Filter, missing};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use serde_json::{Map, Value};
use turnstone_ojs::{SubscriptionReply, read_change};
use utoipa::ToSchema;

/// The changes; at least one of these.
#[derive(ToSchema)]
#[schema(as = WebhookSubscriptionChange, example = json!({"active": false}))]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Change {
    url: Option<String>,
    events: Option<Vec<String>>,
    filter: Option<Filter>,
    metadata: Option<Map<String, Value>>,
    /// Events that occur while it is not active are never delivered; waiting deliveries continue when it is active
    /// again.
    active: Option<bool>,
}

/// Changes a subscription.
#[utoipa::path(
    patch, path = "/ojs/v1/webhooks/subscriptions/{id}", tag = "webhooks",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The subscription.")),
    request_body = Change,
    responses((status = 200, description = "It is changed.", body = SubscriptionReply)),
)]
pub(crate) async fn patch(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let change = read_change(&body, app.api.options.private_webhooks)?;
    let now = app.api.clock.now();
    match app.api.store.webhooks.change_webhook(&id, tenant.name(), change, now).await? {
        Some(webhook) => Ok(reply::ok(&SubscriptionReply::of(&webhook, false))),
        None => Err(missing(&id).into()),
    }
}
