//! `PUT` and `POST /ojs/v1/jobs/{id}/checkpoint` (OJS durable execution §4).

use super::{outcome, shapes, show_state};
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, LeaseToken, Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::work;
use turnstone_store::LeasedJob;

/// Keeps a state of the job for its next attempt, in place of the last one. Jobs that have ended keep theirs.
#[utoipa::path(
    put, path = "/ojs/v1/jobs/{id}/checkpoint", tag = "workers",
    security(("tenant" = ["worker"])),
    params(
        ("id" = String, Path, description = "The job."),
        ("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, or ext_lease_token in the body."),
    ),
    request_body = work::StateBody,
    responses(
        (status = 200, description = "It is kept.", body = shapes::SavedStateReply),
        (status = 409, description = "The job has ended, or the lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn save_state(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    token: LeaseToken,
    JsonBytes(body): JsonBytes,
) -> Answer {
    save(&app, &id, (tenant, token), &body).await
}

/// The same, as the specification defines it.
#[utoipa::path(
    post, path = "/ojs/v1/jobs/{id}/checkpoint", tag = "workers",
    security(("tenant" = ["worker"])),
    params(
        ("id" = String, Path, description = "The job."),
        ("X-OJS-Lease-Token" = Option<String>, Header, description = "The token of the lease, or ext_lease_token in the body."),
    ),
    request_body = work::StateBody,
    responses(
        (status = 200, description = "It is kept.", body = shapes::SavedStateReply),
        (status = 409, description = "The job has ended, or the lease token is one of another attempt (`stale_lease`).", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn post_state(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    token: LeaseToken,
    JsonBytes(body): JsonBytes,
) -> Answer {
    save(&app, &id, (tenant, token), &body).await
}

async fn save(app: &App, id: &str, (tenant, token): (Tenant, LeaseToken), body: &[u8]) -> Answer {
    let id = tenant.job(app, id).await?;
    let work::StateBody { state, ext_lease_token } = work::saved_state(body)?;
    let token = token.or(ext_lease_token)?;
    let job = LeasedJob { job: id.clone(), tenant: tenant.into_name(), token };
    let outcome = app.api.store.remote.save_state(job, state.into_text(), app.api.clock.now()).await?;
    let saved = outcome::done(outcome, &id, "cannot save a state")?;
    Ok(reply::ok(&show_state::shown(&id, &saved)?))
}
