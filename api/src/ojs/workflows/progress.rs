//! `GET /ojs/v1/workflows/{id}/progress`: the progress of a workflow, in numbers.

use super::body::missing;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::ids::shown;
use utoipa::ToSchema;

/// How many of the members of a workflow have ended, and how. Callbacks do not count.
#[derive(Serialize, ToSchema)]
pub(super) struct WorkflowProgress {
    workflow_id: String,
    /// running, completed, failed or cancelled.
    state: &'static str,
    total: i64,
    completed: i64,
    failed: i64,
    /// Not ended.
    pending: i64,
    /// The share that has ended, from 0 to 1.
    progress: f64,
}

/// The progress of a workflow.
#[utoipa::path(
    get, path = "/ojs/v1/workflows/{id}/progress", tag = "workflows",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "Of the workflow."),
           ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the workflow.")),
    responses((status = 200, description = "The numbers.", body = WorkflowProgress)),
)]
pub(super) async fn progress(State(app): State<Shared>, tenant: Tenant, Segment(id): Segment) -> Answer {
    let found = app.api.store.workflows.workflow(&id, tenant.name()).await?;
    let (workflow, _) = found.ok_or_else(|| missing(&id))?;
    // A workflow has at most 1,000 members: a double holds both numbers exactly.
    let share = |part: i64| part as f64 / workflow.members.max(1) as f64;
    Ok(reply::ok(&WorkflowProgress {
        progress: share(workflow.ended),
        state: workflow.state.as_str(),
        total: workflow.members,
        completed: workflow.succeeded,
        failed: workflow.ended - workflow.succeeded,
        pending: workflow.members - workflow.ended,
        workflow_id: shown(&workflow.id).to_owned(),
    }))
}
