//! `POST /ojs/v1/dead-letter/{id}/retry` (OJS dead letter §4.3) and the same under `/ojs/v1/admin`: runs a dead letter
//! again, from its first attempt. An agent job continues where it stopped.

use crate::api::Shared;
use crate::audit::Operator;
use crate::principals::work;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::principal::WorkKind;
use turnstone_ojs::{JobReply, OjsError, RetryRequest, overrides};
use turnstone_store::ActionOutcome;

/// Runs a dead letter again, from its first attempt and without its errors.
#[utoipa::path(
    post, path = "/ojs/v1/dead-letter/{id}/retry", operation_id = "retry_dead_letter", tag = "dead letters",
    security(("tenant" = ["operator"])),
    params(("id" = String, Path, description = "The job.")),
    request_body = Option<RetryRequest>,
    responses((status = 200, description = "It is available.", body = JobReply)),
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
    let missing = || OjsError::not_found("dead letter", &id);
    match app.api.store.operate.retry(&job_id, tenant.name(), true, anew, now).await? {
        ActionOutcome::Done { previous } => {
            operator.did("dead_letter.retry", &id, &format!("available, was {previous}"));
            let job = app.api.store.views.job_of(&job_id, tenant.name()).await?.ok_or_else(missing)?;
            Ok(reply::ok(&JobReply::from(&job)))
        }
        ActionOutcome::Forked => Err(super::forked(&id).into()),
        ActionOutcome::HasFurtherInputs => Err(super::has_further_inputs(&id).into()),
        ActionOutcome::NotUnique(other) => Err(OjsError::not_unique(other.as_str()).into()),
        ActionOutcome::Refused(_) | ActionOutcome::NotFound => Err(missing().into()),
    }
}
