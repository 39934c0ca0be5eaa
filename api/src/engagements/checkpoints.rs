//! `GET /engagements/{id}/checkpoints?page=&per_page=&bodies=true`: which phases are done, oldest first.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment};
use crate::show;
use axum::extract::State;
use serde_json::{Value, json};
use turnstone_store::Page;

pub(crate) async fn checkpoints(State(app): State<Shared>, Segment(id): Segment, params: Params) -> Answer {
    let (engagement, _, _) = super::find(&app, &id).await?;
    let with_bodies = matches!(params.text("bodies"), Some("true" | "1"));
    let (page, slice) = params.page()?;
    let one_more = Page { limit: slice.limit + 1, ..slice };
    let mut rows = app.api.store.views.checkpoints(&engagement.id, one_more).await?;
    let has_more = rows.len() > slice.limit as usize;
    rows.truncate(slice.limit as usize);
    let checkpoints: Vec<Value> = rows.iter().map(|row| show::checkpoint(row, with_bodies)).collect();
    let pagination = json!({"page": page, "per_page": slice.limit, "has_more": has_more});
    Ok(reply::ok(&json!({"checkpoints": checkpoints, "pagination": pagination})))
}
