//! `POST /ojs/v1/workflows`: makes a workflow; steps without dependencies are enqueued at once.

use super::super::jobs::accept_all::{Members, refused};
use super::body::{WorkflowReply, missing};
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, LOCATION};
use serde_json::{Map, Value};
use turnstone_ojs::workflow::WorkflowRequest;
use turnstone_store::{NewStep, NewWorkflow, WaitingJob};
use utoipa::ToSchema;

/// A chain (`steps`), a group or a batch (`jobs`); or, without `type`, a graph whose steps have an `id` and `depends_on`.
/// Members are jobs as for `POST /ojs/v1/jobs`.
#[derive(ToSchema)]
#[schema(example = json!({"type": "chain", "name": "order", "steps": [
    {"type": "payment.take", "args": [17]}, {"type": "parcel.send", "args": [17]},
]}))]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Create {
    /// UUIDv7; made by the server when it is left out.
    id: Option<String>,
    /// chain, group or batch.
    #[schema(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    /// Of a chain or a graph: up to 1,000.
    steps: Option<Vec<Map<String, Value>>>,
    /// Of a group or a batch: up to 1,000.
    jobs: Option<Vec<docs::Enqueue>>,
    /// Of a batch: on_complete, on_success, on_failure.
    callbacks: Option<Map<String, Value>>,
}

/// Makes a workflow. It and its first jobs are durable when the response is 201.
#[utoipa::path(
    post, path = "/ojs/v1/workflows", operation_id = "create_workflow", tag = "workflows",
    security(("tenant" = ["submitter"])),
    params(("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the workflow.")),
    request_body = Create,
    responses((status = 201, description = "The workflow runs.", body = WorkflowReply)),
)]
pub(super) async fn create(State(app): State<Shared>, tenant: Tenant, JsonBytes(body): JsonBytes) -> Answer {
    let now = app.api.clock.now();
    let request = WorkflowRequest::read(&body)?;
    let id = request.id.unwrap_or_else(|| app.api.ids.next());
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
    let found = app.api.store.workflows.workflow(&id, tenant.name()).await?;
    let (workflow, steps) = found.ok_or_else(|| missing(&id))?;
    let mut response = reply::json(StatusCode::CREATED, &WorkflowReply::of(&workflow, &steps));
    if let Ok(location) = HeaderValue::from_str(&format!("/ojs/v1/workflows/{id}")) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}
