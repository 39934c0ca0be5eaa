//! `DELETE /ojs/v1/dead-letter/{id}` (200) and `DELETE /ojs/v1/admin/dead-letter/{id}` (204): deletes a dead letter,
//! with its history.

use crate::api::{App, Shared};
use crate::audit::Operator;
use crate::reply::{self, Answer, Failure};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::Serialize;
use turnstone_ojs::OjsError;
use turnstone_store::ActionOutcome;
use utoipa::ToSchema;

/// A dead letter that was deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeletedDeadLetter {
    deleted: bool,
    id: String,
    job_id: String,
}

/// Deletes a dead letter and everything that belongs to it.
#[utoipa::path(
    delete, path = "/ojs/v1/dead-letter/{id}", operation_id = "delete_dead_letter", tag = "dead letters",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The job.")),
    responses((status = 200, description = "It is gone.", body = DeletedDeadLetter)),
)]
pub(crate) async fn delete(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    operator: Operator,
) -> Answer {
    remove(&app, &id, &tenant, &operator).await?;
    Ok(reply::ok(&DeletedDeadLetter { deleted: true, id: id.clone(), job_id: id }))
}

/// Deletes a dead letter and everything that belongs to it.
#[utoipa::path(
    delete, path = "/ojs/v1/admin/dead-letter/{id}", tag = "admin",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The job.")),
    responses((status = 204, description = "It is gone.")),
)]
pub(crate) async fn delete_for_admins(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    operator: Operator,
) -> Answer {
    remove(&app, &id, &tenant, &operator).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn remove(app: &App, id: &str, tenant: &Tenant, operator: &Operator) -> Result<(), Failure> {
    let job = tenant.job(app, id).await?;
    match app.api.store.operate.delete_dead_letter(&job, tenant.name()).await? {
        ActionOutcome::Done { previous } => {
            operator.did("dead_letter.delete", id, &format!("deleted, was {previous}"));
            Ok(())
        }
        ActionOutcome::Forked => Err(super::forked(id).into()),
        ActionOutcome::HasFurtherInputs => Err(super::has_further_inputs(id).into()),
        ActionOutcome::NotUnique(_) | ActionOutcome::Refused(_) | ActionOutcome::NotFound => {
            Err(OjsError::not_found("dead letter", id).into())
        }
    }
}
