//! `POST /batches/{tag}/close`: no more jobs are expected.

use super::BatchView;
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::OjsError;

/// Closes a batch. Once all of its jobs have ended, the event `batch.ended` is written, within seconds. Closing it again
/// changes nothing, unless it ended and received further jobs: then it ends once more.
#[utoipa::path(
    post, path = "/batches/{tag}/close", tag = "batches",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(
        ("tag" = String, Path, description = "The tag.", example = "run=7"),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's jobs."),
    ),
    responses(
        (status = 200, description = "It is closed.", body = BatchView),
        (status = 404, description = "No job has this tag.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn close_batch(State(app): State<Shared>, Segment(tag): Segment, tenant: Tenant) -> Answer {
    let batches = &app.api.store.batches;
    if !batches.close(&tag, tenant.name(), app.api.clock.now()).await? {
        let hint = "Enqueue its jobs with this tag before you close it; GET /ojs/v1/jobs?tag=TAG lists them.";
        return Err(OjsError { hint, ..OjsError::not_found("batch", &tag) }.into());
    }
    let batch = batches.batch(&tag, tenant.name()).await?;
    Ok(reply::ok(&BatchView::of(tag, &batch)))
}
