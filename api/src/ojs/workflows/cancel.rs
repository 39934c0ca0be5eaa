//! `DELETE /ojs/v1/workflows/{id}` and `POST /ojs/v1/workflows/{id}/cancel`: 409 once a workflow has ended.

use super::body::{WorkflowReply, missing};
use crate::api::{App, Shared};
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::OjsError;
use turnstone_store::WorkflowCancel;

/// Ends a workflow: waiting jobs never start, enqueued ones are cancelled, active ones may end.
#[utoipa::path(
    delete, path = "/ojs/v1/workflows/{id}", operation_id = "delete_workflow", tag = "workflows",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(("id" = String, Path, description = "Of the workflow."),
           ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the workflow.")),
    responses((status = 200, description = "The workflow is cancelled.", body = WorkflowReply)),
)]
pub(super) async fn delete(State(app): State<Shared>, tenant: Tenant, Segment(id): Segment) -> Answer {
    end(&app, &tenant, &id).await
}

/// Ends a workflow: waiting jobs never start, enqueued ones are cancelled, active ones may end.
#[utoipa::path(
    post, path = "/ojs/v1/workflows/{id}/cancel", operation_id = "cancel_workflow", tag = "workflows",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(("id" = String, Path, description = "Of the workflow."),
           ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the workflow.")),
    responses((status = 200, description = "The workflow is cancelled.", body = WorkflowReply)),
)]
pub(super) async fn cancel(State(app): State<Shared>, tenant: Tenant, Segment(id): Segment) -> Answer {
    end(&app, &tenant, &id).await
}

async fn end(app: &App, tenant: &Tenant, id: &str) -> Answer {
    let workflows = &app.api.store.workflows;
    let found = workflows.workflow(id, tenant.name()).await?;
    let (found, _) = found.ok_or_else(|| missing(id))?;
    match workflows.cancel(&found.id, tenant.name(), app.api.clock.now()).await? {
        WorkflowCancel::Cancelled => {}
        WorkflowCancel::NotFound => return Err(missing(id).into()),
        WorkflowCancel::AlreadyEnded(state) => {
            let state = state.as_str();
            let message = format!("Workflow {id} cannot be cancelled: it is {state} already.");
            return Err(OjsError::conflict(message).with("state", state).into());
        }
    }
    let (workflow, steps) = workflows.workflow(id, tenant.name()).await?.ok_or_else(|| missing(id))?;
    Ok(reply::ok(&WorkflowReply::of(&workflow, &steps)))
}
