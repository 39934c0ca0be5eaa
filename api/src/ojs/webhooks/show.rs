//! `GET /ojs/v1/webhooks/subscriptions/{id}`: one subscription.

use super::find;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::SubscriptionReply;

/// One subscription, without its secret.
#[utoipa::path(
    get, path = "/ojs/v1/webhooks/subscriptions/{id}", operation_id = "show_webhook", tag = "webhooks",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The subscription.")),
    responses((status = 200, description = "The subscription.", body = SubscriptionReply)),
)]
pub(crate) async fn show(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let webhook = find(&app, &id, &tenant).await?;
    Ok(reply::ok(&SubscriptionReply::of(&webhook, false)))
}
