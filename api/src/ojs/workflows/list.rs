//! `GET /ojs/v1/workflows?state=&limit=&offset=`: workflows, newest first.

use super::body::WorkflowBody;
use crate::api::Shared;
use crate::parts::ContinuedPosition;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant, unknown_place};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::ids::shown;
use turnstone_domain::workflow::WorkflowState;
use turnstone_store::{Page, WorkflowFilter};
use utoipa::ToSchema;

/// Workflows, newest first, without their steps.
#[derive(Serialize, ToSchema)]
pub(super) struct WorkflowList {
    workflows: Vec<WorkflowBody>,
    pagination: ContinuedPosition,
}

/// Workflows, newest first.
#[utoipa::path(
    get, path = "/ojs/v1/workflows", operation_id = "list_workflows", tag = "workflows",
    security(("tenant" = ["viewer"])),
    params(
        ("state" = Option<String>, Query, description = "running, completed, failed or cancelled."),
        ("limit" = Option<u32>, Query, description = "50 unless said otherwise, at most 200.", minimum = 1, maximum = 200),
        ("after" = Option<String>, Query, description = "After the workflow with this id: `next_after` of the part before."),
        ("offset" = Option<u32>, Query, description = "How many to leave out.", minimum = 0),
        ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the workflows."),
    ),
    responses((status = 200, description = "The workflows.", body = WorkflowList)),
)]
pub(super) async fn list(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let words = WorkflowState::ALL.map(WorkflowState::as_str).join(", ");
    let after = match params.after() {
        Some(after) => {
            let found = app.api.store.workflows.workflow(after, tenant.name()).await?;
            Some(found.ok_or_else(|| unknown_place("workflow"))?.0.id)
        }
        None => None,
    };
    let filter = WorkflowFilter {
        tenant: tenant.into_name(),
        state: params.word("state", WorkflowState::parse, &words)?,
        after,
    };
    let limit = params.number("limit", 50, 1, 200)?;
    let offset = params.number("offset", 0, 0, u32::MAX)?;
    let one_more = Page { limit: limit + 1, offset };
    let (mut found, total) = app.api.store.workflows.workflows(&filter, one_more).await?;
    let has_more = found.len() > limit as usize;
    found.truncate(limit as usize);
    // In a list of all tenants, only the unique form names one place.
    let place = |id: &str| if filter.tenant.is_some() { shown(id).to_owned() } else { id.to_owned() };
    let next_after = found.last().filter(|_| has_more).map(|last| place(&last.id));
    let workflows = found.iter().map(WorkflowBody::of).collect();
    let pagination = ContinuedPosition { total, limit, offset, has_more, next_after };
    Ok(reply::ok(&WorkflowList { workflows, pagination }))
}
