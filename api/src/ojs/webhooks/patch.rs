//! `PATCH /ojs/v1/webhooks/subscriptions/{id}`: changes the given members.

use super::missing;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::{SubscriptionChange, SubscriptionReply, read_change};

/// Changes a subscription.
#[utoipa::path(
    patch, path = "/ojs/v1/webhooks/subscriptions/{id}", tag = "webhooks",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The subscription.")),
    request_body = SubscriptionChange,
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
