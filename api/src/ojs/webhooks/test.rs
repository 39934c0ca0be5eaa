//! `POST /ojs/v1/webhooks/subscriptions/{id}/test`: sends a test that is no event.

use super::{DeliveryReply, find};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::json;
use turnstone_domain::webhook::{Delivery, DeliveryState, NewDelivery};
use turnstone_ojs::{CloudEvent, OjsError};

/// Sends a test. Its outcome is among the deliveries.
#[utoipa::path(
    post, path = "/ojs/v1/webhooks/subscriptions/{id}/test", tag = "webhooks",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The subscription.")),
    responses((status = 202, description = "It is on its way.", body = DeliveryReply)),
)]
pub(crate) async fn test(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let webhook = find(&app, &id, &tenant).await?;
    if !webhook.active {
        return Err(
            OjsError::conflict(format!("Subscription {id} is not active: nothing is sent to it.")).into()
        );
    }
    let (ids, now) = (app.api.ids.as_ref(), app.api.clock.now());
    let event_id = format!("test_{}", ids.next());
    let body = json!(CloudEvent::test(&event_id, &webhook.id, now)).to_string();
    let new = NewDelivery {
        id: format!("msg_{}", ids.next()),
        webhook_id: webhook.id,
        event_id,
        event: "webhook.test".to_owned(),
        body,
        created_at: now,
    };
    app.api.store.webhooks.deliver(new.clone()).await?;
    let delivery = Delivery {
        id: new.id,
        webhook_id: new.webhook_id,
        event_id: new.event_id,
        event: new.event,
        body: new.body,
        state: DeliveryState::Pending,
        attempts: 0,
        next_at: Some(now),
        status: None,
        error: None,
        created_at: now,
        ended_at: None,
    };
    Ok(reply::json(StatusCode::ACCEPTED, &DeliveryReply { delivery: delivery.into() }))
}
