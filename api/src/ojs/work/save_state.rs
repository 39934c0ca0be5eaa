//! `PUT` and `POST /ojs/v1/jobs/{id}/checkpoint` (OJS durable execution §4).

use super::{outcome, shapes, show_state};
use crate::api::{App, Shared};
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use turnstone_ojs::work;

/// Keeps a state of the job for its next attempt, in place of the last one. Jobs that have ended keep theirs.
#[utoipa::path(
    put, path = "/ojs/v1/jobs/{id}/checkpoint", tag = "workers",
    security(("tenant" = ["worker"])),
    params(("id" = String, Path, description = "The job.")),
    request_body = work::StateBody,
    responses(
        (status = 200, description = "It is kept.", body = shapes::SavedStateReply),
        (status = 409, description = "The job has ended.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn save_state(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    save(&app, &id, &tenant, &body).await
}

/// The same, as the specification defines it.
#[utoipa::path(
    post, path = "/ojs/v1/jobs/{id}/checkpoint", tag = "workers",
    security(("tenant" = ["worker"])),
    params(("id" = String, Path, description = "The job.")),
    request_body = work::StateBody,
    responses(
        (status = 200, description = "It is kept.", body = shapes::SavedStateReply),
        (status = 409, description = "The job has ended.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn post_state(
    State(app): State<Shared>,
    Segment(id): Segment,
    tenant: Tenant,
    JsonBytes(body): JsonBytes,
) -> Answer {
    save(&app, &id, &tenant, &body).await
}

async fn save(app: &App, id: &str, tenant: &Tenant, body: &[u8]) -> Answer {
    let id = tenant.job(app, id).await?;
    let state = work::saved_state(body)?.into_text();
    let outcome = app.api.store.remote.save_state(&id, tenant.name(), state, app.api.clock.now()).await?;
    let saved = outcome::done(outcome, &id, "cannot save a state")?;
    Ok(reply::ok(&show_state::shown(&id, &saved)?))
}
