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
use serde_json::{Map, Value};
use turnstone_domain::ids::secret_bytes;
use turnstone_domain::webhook::{SigningSecret, Webhook};
use turnstone_domain::{Ids, RawObject};
use turnstone_ojs::{OjsError, subscription_to_json};
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

/// `{"subscription": …}` and the same flat, because clients of either kind exist.
fn wrapped(webhook: &Webhook, with_secret: bool) -> RawObject {
    let shown = subscription_to_json(webhook, with_secret);
    let mut reply = RawObject::new();
    reply.insert("subscription", shown.to_raw());
    for (name, value) in shown {
        reply.insert(name, value);
    }
    reply
}

/// The filter of the events; empty lists match all.
#[derive(ToSchema)]
#[schema(as = WebhookFilter)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Filter {
    queues: Option<Vec<String>>,
    job_types: Option<Vec<String>>,
}

/// A subscription to events.
#[derive(ToSchema)]
#[schema(as = WebhookSubscription)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Subscription {
    id: String,
    #[schema(example = "https://example.com/hooks/ojs")]
    url: String,
    /// Names, `*` and beginnings such as `job.*`.
    events: Vec<String>,
    filter: Filter,
    metadata: Map<String, Value>,
    active: bool,
    /// Only in the answer that made it.
    secret: Option<String>,
    created_at: String,
    updated_at: String,
}

/// A subscription, and the same flat.
#[derive(ToSchema)]
#[schema(as = WebhookSubscriptionReply)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct SubscriptionReply {
    subscription: Subscription,
    #[schema(inline)]
    #[serde(flatten)]
    flat: Subscription,
}

/// One event on its way to one subscription.
#[derive(ToSchema)]
#[schema(as = WebhookDelivery)]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Delivery {
    /// `webhook-id` of every attempt.
    id: String,
    subscription_id: String,
    event_id: String,
    #[schema(example = "job.completed")]
    event: String,
    /// pending, delivered or failed.
    state: String,
    attempts: i64,
    /// The last HTTP status of the receiver.
    status: Option<i64>,
    /// Why the last attempt failed.
    error: Option<String>,
    created_at: String,
    next_attempt_at: Option<String>,
    ended_at: Option<String>,
}

/// A delivery.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDeliveryReply)]
pub(crate) struct DeliveryReply {
    #[schema(value_type = Delivery)]
    delivery: Map<String, Value>,
}
