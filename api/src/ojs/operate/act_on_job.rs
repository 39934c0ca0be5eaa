//! `POST /ojs/v1/admin/jobs/{id}/cancel` and `/retry`: an operator's actions on one job.

use crate::api::Shared;
use crate::audit::Operator;
use crate::docs;
use crate::ojs::jobs::cancel_job::{self, CancelledJob};
use crate::principals::work;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::principal::WorkKind;
use turnstone_ojs::{JobReply, OjsError, RetryRequest, overrides};
use turnstone_store::ActionOutcome;

/// Cancels a job. An active one loses its lease, and its worker is notified.
#[utoipa::path(
    post, path = "/ojs/v1/admin/jobs/{id}/cancel", operation_id = "admin_cancel_job", tag = "admin",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The job.")),
    responses(
        (status = 200, description = "It is cancelled.", body = CancelledJob),
        (status = 409, description = "It had ended already.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn cancel(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    operator: Operator,
) -> Answer {
    let answer = cancel_job::cancel(&app, id.clone(), &tenant).await?;
    operator.did("job.cancel", &id, "done");
    Ok(answer)
}

/// Runs a discarded job again from its first attempt, or a retryable one before its time. An agent job continues where
/// it stopped.
#[utoipa::path(
    post, path = "/ojs/v1/admin/jobs/{id}/retry", operation_id = "admin_retry_job", tag = "admin",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The job.")),
    request_body = Option<RetryRequest>,
    responses(
        (status = 200, description = "It is available.", body = JobReply),
        (status = 409, description = "It is in another state.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn retry(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    operator: Operator,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let now = app.api.clock.now();
    let anew = overrides(&body, now)?;
    let job_id = tenant.job(&app, &id).await?;
    work::check_job(&app, &job_id, &tenant, WorkKind::Unchanged).await?;
    let missing = || OjsError::not_found("job", &id);
    match app.api.store.operate.retry(&job_id, tenant.name(), false, anew, now).await? {
        ActionOutcome::Done { previous } => {
            operator.did("job.retry", &id, &format!("available, was {previous}"));
            let job = app.api.store.views.job_of(&job_id, tenant.name()).await?.ok_or_else(missing)?;
            Ok(reply::ok(&JobReply::from(&job)))
        }
        ActionOutcome::Forked => Err(super::forked(&id).into()),
        ActionOutcome::HasFurtherInputs => Err(super::has_further_inputs(&id).into()),
        ActionOutcome::NotUnique(other) => Err(OjsError::not_unique(other.shown()).into()),
        ActionOutcome::Refused(state) => {
            let message =
                format!("Job {id} cannot be tried again: it is {state}, not discarded or retryable.");
            Err(OjsError::conflict(message).with("state", state.as_str()).into())
        }
        ActionOutcome::NotFound => Err(missing().into()),
    }
}
