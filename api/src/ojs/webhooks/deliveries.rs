//! `GET /ojs/v1/webhooks/subscriptions/{id}/deliveries?state=&limit=&offset=`: deliveries and their outcomes.

use super::find;
use crate::api::Shared;
use crate::parts::ContinuedPosition;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::webhook::DeliveryState;
use turnstone_ojs::DeliveryBody;
use turnstone_store::Page;
use utoipa::ToSchema;

/// Deliveries, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = WebhookDeliveries)]
pub(crate) struct Deliveries {
    deliveries: Vec<DeliveryBody>,
    pagination: ContinuedPosition,
}

/// The deliveries of a subscription, newest first.
#[utoipa::path(
    get, path = "/ojs/v1/webhooks/subscriptions/{id}/deliveries", tag = "webhooks",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The subscription."),
        ("state" = Option<String>, Query, description = "pending, delivered or failed."),
        ("limit" = Option<u32>, Query, description = "50 unless said otherwise.", minimum = 1, maximum = 200),
        ("after" = Option<String>, Query, description = "After the delivery with this id: `next_after` of the part before."),
        ("offset" = Option<u32>, Query, description = "After this many.", minimum = 0),
    ),
    responses((status = 200, description = "A part of the list.", body = Deliveries)),
)]
pub(crate) async fn deliveries(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    let webhook = find(&app, &id, &tenant).await?;
    let state = params.word("state", DeliveryState::parse, "pending, delivered, failed")?;
    let page =
        Page { limit: params.number("limit", 50, 1, 200)?, offset: params.number("offset", 0, 0, u32::MAX)? };
    let one_more = Page { limit: page.limit + 1, ..page };
    let (mut found, total) =
        app.api.store.webhooks.deliveries(&webhook.id, state, one_more, params.after()).await?;
    let has_more = found.len() > page.limit as usize;
    found.truncate(page.limit as usize);
    let next_after = found.last().filter(|_| has_more).map(|last| last.id.clone());
    let (limit, offset) = (page.limit, page.offset);
    Ok(reply::ok(&Deliveries {
        deliveries: found.into_iter().map(DeliveryBody::from).collect(),
        pagination: ContinuedPosition { total, limit, offset, has_more, next_after },
    }))
}
