//! `GET /ojs/v1/dead-letter/{id}`: one job that failed for good and is kept for a decision.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::{JobReply, OjsError};

/// One dead letter.
#[utoipa::path(
    get, path = "/ojs/v1/dead-letter/{id}", operation_id = "show_dead_letter", tag = "dead letters",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The job.")),
    responses((status = 200, description = "The job.", body = JobReply)),
)]
pub(crate) async fn show(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let job = tenant.job(&app, &id).await?;
    match app.api.store.operate.dead_letter(&job, tenant.name()).await? {
        Some(job) => Ok(reply::ok(&JobReply::from(&job))),
        None => Err(OjsError::not_found("dead letter", &id).into()),
    }
}
