//! `GET /batches/{tag}`: the progress of the jobs with a tag.

use super::BatchView;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;

/// Returns the progress of the jobs with a tag. A tag that no job has gives a batch without jobs.
#[utoipa::path(
    get, path = "/batches/{tag}", tag = "batches",
    security(("tenant" = ["viewer"])),
    params(
        ("tag" = String, Path, description = "The tag.", example = "run=7"),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's jobs."),
    ),
    responses((status = 200, description = "The batch.", body = BatchView)),
)]
pub(crate) async fn show_batch(State(app): State<Shared>, Segment(tag): Segment, tenant: Tenant) -> Answer {
    let batch = app.api.store.batches.batch(&tag, tenant.name()).await?;
    Ok(reply::ok(&BatchView::of(tag, &batch)))
}
