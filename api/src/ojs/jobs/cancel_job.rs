//! `DELETE /ojs/v1/jobs/{id}` and `POST /ojs/v1/jobs/{id}/cancel` (OJS HTTP binding §5.3): 409 once a job has ended.

use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::JobState;
use turnstone_ojs::{JobReply, OjsError};
use turnstone_store::CancelOutcome;
use utoipa::ToSchema;

/// A job that was cancelled.
#[derive(Serialize, ToSchema)]
pub(in crate::ojs) struct CancelledJob {
    #[serde(flatten)]
    reply: JobReply,
    /// Its state before.
    #[schema(value_type = String)]
    previous_state: JobState,
}

/// Cancels a job. An active one loses its lease, and its worker is notified.
#[utoipa::path(
    post, path = "/ojs/v1/jobs/{id}/cancel", tag = "jobs",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The job.")),
    responses(
        (status = 200, description = "It is cancelled.", body = CancelledJob),
        (status = 409, description = "It had ended already.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn cancel_job(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    cancel(&app, id, &tenant).await
}

/// Cancels a job. An active one loses its lease, and its worker is notified.
#[utoipa::path(
    delete, path = "/ojs/v1/jobs/{id}", tag = "jobs",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The job.")),
    responses(
        (status = 200, description = "It is cancelled.", body = CancelledJob),
        (status = 409, description = "It had ended already.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn delete_job(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    cancel(&app, id, &tenant).await
}

pub(in crate::ojs) async fn cancel(app: &App, id: String, tenant: &Tenant) -> Answer {
    let job_id = tenant.job(app, &id).await?;
    let missing = || OjsError::not_found("job", &id);
    match app.api.store.intake.cancel_of(&job_id, tenant.name(), app.api.clock.now()).await? {
        CancelOutcome::Cancelled { previous } => {
            let job = app.api.store.views.job_of(&job_id, tenant.name()).await?.ok_or_else(missing)?;
            Ok(reply::ok(&CancelledJob {
                reply: JobReply::from(&job).beside(&["previous_state"]),
                previous_state: previous,
            }))
        }
        CancelOutcome::AlreadyEnded(state) => {
            let message = format!("Job {id} cannot be cancelled: it is {state} already.");
            Err(OjsError::conflict(message).with("state", state.as_str()).into())
        }
        CancelOutcome::NotFound => Err(missing().into()),
    }
}
