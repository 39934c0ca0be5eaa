//! `POST /ojs/v1/admin/workers/{id}/quiet` and `DELETE /ojs/v1/admin/workers/{id}`: directives that a worker receives
//! with its next heartbeat.

use crate::api::{App, Shared};
use crate::audit::Operator;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::Segment;
use axum::extract::State;
use serde::Serialize;
use turnstone_ojs::OjsError;
use turnstone_store::{Directive, WorkerKind};
use utoipa::ToSchema;

/// The directive of a worker.
#[derive(Serialize, ToSchema)]
pub(crate) struct DirectedWorker {
    id: String,
    worker_id: String,
    /// quiet or terminate.
    directive: &'static str,
}

/// Directs a worker to take no further jobs.
#[utoipa::path(
    post, path = "/ojs/v1/admin/workers/{id}/quiet", tag = "admin",
    security(("fleet" = ["operator"])),
    params(("id" = String, Path, description = "The worker.")),
    responses(
        (status = 200, description = "It receives this with its next beat.", body = DirectedWorker),
        (status = 409, description = "It is one of our own, which drains and ends, but is not only quieted.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn quiet(State(app): State<Shared>, Segment(id): Segment, operator: Operator) -> Answer {
    direct(&app, id, Directive::Quiet, &operator).await
}

/// Directs a worker to drain and end. One of our own does what it does at SIGTERM: it claims nothing more, gives back what
/// it cannot finish, and its process ends.
#[utoipa::path(
    delete, path = "/ojs/v1/admin/workers/{id}", tag = "admin",
    security(("fleet" = ["operator"])),
    params(("id" = String, Path, description = "The worker.")),
    responses((status = 200, description = "It receives this with its next beat.", body = DirectedWorker)),
)]
pub(crate) async fn terminate(State(app): State<Shared>, Segment(id): Segment, operator: Operator) -> Answer {
    direct(&app, id, Directive::Terminate, &operator).await
}

async fn direct(app: &App, id: String, directive: Directive, operator: &Operator) -> Answer {
    let workers = app.api.store.views.workers().await?;
    let is_own = workers.iter().any(|worker| worker.name == id && worker.kind == WorkerKind::Own);
    if is_own && directive == Directive::Quiet {
        let message =
            format!("{id} is a worker of Turnstone's own, which ends when it takes no further jobs.");
        let hint = "Drain it: DELETE /ojs/v1/admin/workers/{id}, or `turnstone worker drain NAME`.";
        return Err(OjsError { hint, ..OjsError::conflict(message) }.into());
    }
    if !app.api.store.remote.direct(&id, Some(directive)).await? {
        return Err(OjsError::not_found("worker", &id).into());
    }
    operator.did("worker.direct", &id, directive.as_str());
    let reported = DirectedWorker { id: id.clone(), worker_id: id, directive: directive.as_str() };
    Ok(reply::ok(&reported))
}
