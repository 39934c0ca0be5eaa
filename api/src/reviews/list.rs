//! `GET /reviews?state=&reviewer=&page=&per_page=`: reviews, oldest first.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Params;
use crate::show;
use axum::extract::State;
use serde_json::{Value, json};
use turnstone_domain::review::ReviewState;
use turnstone_store::{Page, ReviewFilter};

pub(crate) async fn list(State(app): State<Shared>, params: Params) -> Answer {
    let filter = ReviewFilter {
        state: params.word("state", ReviewState::parse, "open, approved, rejected, expired")?,
        reviewer: params.text("reviewer").map(str::to_owned),
    };
    let (page, slice) = params.page()?;
    let one_more = Page { limit: slice.limit + 1, ..slice };
    let mut reviews = app.api.store.views.reviews(&filter, one_more).await?;
    let has_more = reviews.len() > slice.limit as usize;
    reviews.truncate(slice.limit as usize);
    let items: Vec<Value> = reviews.iter().map(show::review).collect();
    Ok(reply::ok(
        &json!({"items": items, "pagination": {"page": page, "per_page": slice.limit, "has_more": has_more}}),
    ))
}
