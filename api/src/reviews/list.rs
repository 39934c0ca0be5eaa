//! `GET /reviews?state=&reviewer=&after=&per_page=`: reviews, oldest first.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant, unknown_place};
use crate::rows::Review;
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::ReviewId;
use turnstone_domain::review::ReviewState;
use turnstone_store::{Page, ReviewFilter};
use utoipa::ToSchema;

/// The position of a page of reviews.
#[derive(Serialize, ToSchema)]
struct ReviewPlace {
    page: u32,
    per_page: u32,
    has_more: bool,
    /// To be sent as `after`, instead of `page`, for the next page; null at the end.
    next_after: Option<String>,
}

/// Reviews, oldest first.
#[derive(Serialize, ToSchema)]
struct ReviewPage {
    items: Vec<Review>,
    pagination: ReviewPlace,
}

/// Lists reviews, oldest first.
#[utoipa::path(
    get, path = "/reviews", operation_id = "list_reviews", tag = "reviews",
    security(("tenant" = ["viewer"])),
    params(
        ("state" = Option<String>, Query, description = "open, approved, rejected, expired, or all, as when it is left out."),
        ("reviewer" = Option<String>, Query, description = "Asked of this user or agent."),
        ("after" = Option<String>, Query, description = "After the review with this id: `next_after` of the page before."),
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise, at most 100.", minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "The reviews.", body = ReviewPage)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let after = params.after().map(ReviewId::from);
    if let Some(after) = &after
        && app.api.store.views.review_of(after, tenant.name()).await?.is_none()
    {
        return Err(unknown_place("review"));
    }
    let filter = ReviewFilter {
        state: match params.text("state") {
            Some("all") => None,
            _ => params.word("state", ReviewState::parse, "open, approved, rejected, expired and all")?,
        },
        reviewer: params.text("reviewer").map(str::to_owned),
        tenant: tenant.into_name(),
        engagement: None,
        after,
    };
    let (page, slice) = params.page()?;
    let one_more = Page { limit: slice.limit + 1, ..slice };
    let mut reviews = app.api.store.views.reviews(&filter, one_more).await?;
    let has_more = reviews.len() > slice.limit as usize;
    reviews.truncate(slice.limit as usize);
    let next_after = reviews.last().filter(|_| has_more).map(|last| last.id.0.clone());
    let pagination = ReviewPlace { page, per_page: slice.limit, has_more, next_after };
    Ok(reply::ok(&ReviewPage { items: reviews.into_iter().map(Review::from).collect(), pagination }))
}
