//! `GET /ojs/v1/workflows/{id}`.

use super::body::{WorkflowReply, missing};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;

/// A workflow with its steps.
#[utoipa::path(
    get, path = "/ojs/v1/workflows/{id}", operation_id = "show_workflow", tag = "workflows",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "Of the workflow."),
           ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the workflow.")),
    responses((status = 200, description = "The workflow.", body = WorkflowReply)),
)]
pub(super) async fn show(State(app): State<Shared>, tenant: Tenant, Segment(id): Segment) -> Answer {
    match app.api.store.workflows.workflow(&id, tenant.name()).await? {
        Some((workflow, steps)) => Ok(reply::ok(&WorkflowReply::of(&workflow, &steps))),
        None => Err(missing(&id).into()),
    }
}
