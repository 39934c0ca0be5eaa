//! `DELETE /ojs/v1/webhooks/subscriptions/{id}`: deletes a subscription.

use super::missing;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// It is gone.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookSubscriptionDeleted)]
pub(crate) struct Deleted {
    deleted: bool,
    id: String,
}

/// Deletes a subscription with its deliveries.
#[utoipa::path(
    delete, path = "/ojs/v1/webhooks/subscriptions/{id}", operation_id = "delete_webhook", tag = "webhooks",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The subscription.")),
    responses((status = 200, description = "It is gone.", body = Deleted)),
)]
pub(crate) async fn delete(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    if app.api.store.webhooks.delete_webhook(&id, tenant.name()).await? {
        Ok(reply::ok(&Deleted { deleted: true, id }))
    } else {
        Err(missing(&id).into())
    }
}
