//! `POST /ojs/v1/admin/jobs/bulk/{retry,cancel,delete}`: one action on all jobs of a filter. The same endpoints exist
//! below `/ojs/v1/jobs/bulk`, where OJS's command line expects them.

use super::bulk::{self, BulkReply, BulkRequest};
use crate::api::Shared;
use crate::audit::Operator;
use crate::reply::Answer;
use crate::request::{JsonBytes, Tenant};
use axum::extract::State;
use turnstone_store::JobAction;

/// Runs discarded jobs again from their first attempt, and retryable ones before their time.
#[utoipa::path(
    post, path = "/ojs/v1/admin/jobs/bulk/retry", operation_id = "admin_retry_jobs", tag = "admin",
    security(("tenant" = ["operator"])),
    params(("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's.")),
    request_body = BulkRequest,
    responses((status = 200, description = "The outcome, job by job.", body = BulkReply)),
)]
pub(crate) async fn retry(
    State(app): State<Shared>,
    tenant: Tenant,
    operator: Operator,
    JsonBytes(body): JsonBytes,
) -> Answer {
    bulk::run(&app, (JobAction::Retry, false), tenant, &operator, &body).await
}

/// Cancels jobs that have not ended.
#[utoipa::path(
    post, path = "/ojs/v1/admin/jobs/bulk/cancel", operation_id = "admin_cancel_jobs", tag = "admin",
    security(("tenant" = ["operator"])),
    params(("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's.")),
    request_body = BulkRequest,
    responses((status = 200, description = "The outcome, job by job.", body = BulkReply)),
)]
pub(crate) async fn cancel(
    State(app): State<Shared>,
    tenant: Tenant,
    operator: Operator,
    JsonBytes(body): JsonBytes,
) -> Answer {
    bulk::run(&app, (JobAction::Cancel, false), tenant, &operator, &body).await
}

/// Deletes jobs that have ended, with their history. Waiting jobs are cancelled first when their state is named; active
/// ones stay.
#[utoipa::path(
    post, path = "/ojs/v1/admin/jobs/bulk/delete", operation_id = "admin_delete_jobs", tag = "admin",
    security(("tenant" = ["operator"])),
    params(("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's.")),
    request_body = BulkRequest,
    responses((status = 200, description = "The outcome, job by job.", body = BulkReply)),
)]
pub(crate) async fn delete(
    State(app): State<Shared>,
    tenant: Tenant,
    operator: Operator,
    JsonBytes(body): JsonBytes,
) -> Answer {
    bulk::run(&app, (JobAction::Delete, false), tenant, &operator, &body).await
}
