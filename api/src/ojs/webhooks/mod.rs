//! Webhooks: subscriptions and deliveries (OJS webhooks).

mod create;
mod delete;
mod deliveries;
mod list;
mod patch;
mod redeliver;
mod rotate_secret;
pub(crate) mod routes;
mod show;
mod test;

use crate::api::App;
use crate::reply::Failure;
use crate::request::Tenant;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use turnstone_domain::Ids;
use turnstone_domain::ids::secret_bytes;
use turnstone_domain::webhook::{SigningSecret, Webhook};
use turnstone_ojs::{DeliveryBody, OjsError};
use utoipa::ToSchema;

/// Returns the webhook with this id.
async fn find(app: &App, id: &str, tenant: &Tenant) -> Result<Webhook, Failure> {
    let found = app.api.store.webhooks.webhook(id, tenant.name()).await?;
    found.ok_or_else(|| missing(id).into())
}

fn missing(id: &str) -> OjsError {
    OjsError::not_found("subscription", id)
}

/// Returns a random secret, in the form of Standard Webhooks.
fn made_secret(ids: &dyn Ids) -> SigningSecret {
    SigningSecret(format!("whsec_{}", BASE64_STANDARD.encode(secret_bytes(ids))))
}

/// A delivery.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDeliveryReply)]
pub(crate) struct DeliveryReply {
    /// The delivery.
    pub delivery: DeliveryBody,
}
