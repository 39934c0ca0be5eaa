//! `POST /ojs/v1/workers/beat` (OJS graceful shutdown §4): a worker reports its state.

use super::{heartbeat, shapes};
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, LeaseToken, Tenant};
use axum::extract::State;
use turnstone_ojs::work::BeatBody;

/// Receives the state of a worker. A worker that drains gets no more jobs.
#[utoipa::path(
    post, path = "/ojs/v1/workers/beat", tag = "workers",
    security(("tenant" = ["worker"])),
    params(("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, or ext_lease_token in the body."),),
    request_body = BeatBody,
    responses(
        (status = 200, description = "The beat is known.", body = shapes::Beaten),
        (status = 409, description = "One of Turnstone's own workers has this name, or a lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn beat(
    State(app): State<Shared>,
    tenant: Tenant,
    token: LeaseToken,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let (heard, state) = heartbeat::hear(&app, (tenant, token), &body).await?;
    let shapes::Heard { directive, jobs_extended, server_time, .. } = heard;
    let state = state.as_str();
    Ok(reply::ok(&shapes::Beaten { acknowledged: true, state, directive, jobs_extended, server_time }))
}
