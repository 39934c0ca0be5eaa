//! `POST /ojs/v1/workflows`: makes a workflow; steps without dependencies are enqueued at once.

use super::super::jobs::accept_all::{Members, refused};
use super::body::{WorkflowReply, missing};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, LOCATION};
use turnstone_domain::ids::{chosen, shown};
use turnstone_ojs::workflow::{CreateWorkflow, WorkflowRequest};
use turnstone_store::{NewStep, NewWorkflow, WaitingJob};

/// Makes a workflow. It and its first jobs are durable when the response is 201.
#[utoipa::path(
    post, path = "/ojs/v1/workflows", operation_id = "create_workflow", tag = "workflows",
    security(("tenant" = ["submitter"])),
    params(("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the workflow.")),
    request_body = CreateWorkflow,
    responses((status = 201, description = "The workflow runs.", body = WorkflowReply)),
)]
pub(super) async fn create(State(app): State<Shared>, tenant: Tenant, JsonBytes(body): JsonBytes) -> Answer {
    let now = app.api.clock.now();
    let request = WorkflowRequest::read(&body)?;
    let id = request.id.map_or_else(|| app.api.ids.next(), |id| chosen(&id, tenant.name()));
    let mut members = Members::new(&app, &tenant, now);
    let (mut steps, mut places) = (Vec::with_capacity(request.steps.len()), Vec::new());
    for (at, step) in request.steps.into_iter().enumerate() {
        let job = members.accept(step.job, &step.place, at).await?;
        let waiting =
            WaitingJob { job, run_relative: step.run_relative, expiry_relative: step.expiry_relative };
        steps.push(NewStep { name: step.name, role: step.role, needs: step.needs, waiting });
        places.push(step.place);
    }
    let (tenant_name, kind) = (tenant.name().map(str::to_owned), request.kind);
    let new =
        NewWorkflow { id: id.clone(), tenant: tenant_name, kind, name: request.name, steps, created_at: now };
    let created = app.api.store.workflows.create(new.clone()).await;
    created.map_err(|error| refused(error, new.steps.iter().map(|step| &step.waiting.job).zip(places)))?;
    let found = app.api.store.workflows.workflow_by_unique_id(&id).await?;
    let (workflow, steps) = found.ok_or_else(|| missing(&id))?;
    let mut response = reply::json(StatusCode::CREATED, &WorkflowReply::of(&workflow, &steps));
    if let Ok(location) = HeaderValue::from_str(&format!("/ojs/v1/workflows/{}", shown(&id))) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}
