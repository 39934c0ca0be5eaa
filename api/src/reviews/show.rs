//! `GET /reviews/{id}`.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use crate::rows;
use axum::extract::State;
use turnstone_domain::ReviewId;
use turnstone_ojs::OjsError;

/// One review.
#[utoipa::path(
    get, path = "/reviews/{id}", operation_id = "show_review", tag = "reviews",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The review.")),
    responses((status = 200, description = "The review.", body = rows::Review)),
)]
pub(crate) async fn show(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    match app.api.store.views.review_of(&ReviewId::from(id.as_str()), tenant.name()).await? {
        Some(review) => Ok(reply::ok(&rows::Review::from(review))),
        None => Err(OjsError::not_found("review", &id).into()),
    }
}
