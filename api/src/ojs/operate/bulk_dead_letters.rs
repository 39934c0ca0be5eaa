//! `POST /ojs/v1/dead-letter/{retry,purge}`: one action on all dead letters of a filter.

use super::bulk::{self, BulkReply, BulkRequest};
use crate::api::Shared;
use crate::audit::Operator;
use crate::reply::Answer;
use crate::request::{JsonBytes, Tenant};
use axum::extract::State;
use turnstone_store::JobAction;

/// Runs dead letters again from their first attempt.
#[utoipa::path(
    post, path = "/ojs/v1/dead-letter/retry", operation_id = "retry_dead_letters", tag = "dead letters",
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
    bulk::run(&app, (JobAction::Retry, true), tenant, &operator, &body).await
}

/// Deletes dead letters, with their history.
#[utoipa::path(
    post, path = "/ojs/v1/dead-letter/purge", operation_id = "purge_dead_letters", tag = "dead letters",
    security(("tenant" = ["operator"])),
    params(("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's.")),
    request_body = BulkRequest,
    responses((status = 200, description = "The outcome, job by job.", body = BulkReply)),
)]
pub(crate) async fn purge(
    State(app): State<Shared>,
    tenant: Tenant,
    operator: Operator,
    JsonBytes(body): JsonBytes,
) -> Answer {
    bulk::run(&app, (JobAction::Delete, true), tenant, &operator, &body).await
}
