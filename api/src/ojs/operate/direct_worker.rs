//! `POST /ojs/v1/admin/workers/{id}/quiet` and `DELETE /ojs/v1/admin/workers/{id}`: directives that a worker over HTTP
//! receives with its next heartbeat.

use crate::api::{App, Shared};
use crate::audit::Operator;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::Segment;
use axum::extract::State;
use axum::http::StatusCode;
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
        (status = 200, description = "It receives this with its next beat.", body = DirectedWorker, content_type = "application/openjobspec+json"),
        (status = 409, description = "It is one of our own, which a signal stops.", body = docs::ErrorReply, content_type = "application/openjobspec+json"),
    ),
)]
pub(crate) async fn quiet(State(app): State<Shared>, Segment(id): Segment, operator: Operator) -> Answer {
    direct(&app, id, Directive::Quiet, &operator).await
}

/// Directs a worker to end.
#[utoipa::path(
    delete, path = "/ojs/v1/admin/workers/{id}", tag = "admin",
    security(("fleet" = ["operator"])),
    params(("id" = String, Path, description = "The worker.")),
    responses(
        (status = 200, description = "It receives this with its next beat.", body = DirectedWorker, content_type = "application/openjobspec+json"),
        (status = 409, description = "It is one of our own, which a signal stops.", body = docs::ErrorReply, content_type = "application/openjobspec+json"),
    ),
)]
pub(crate) async fn terminate(State(app): State<Shared>, Segment(id): Segment, operator: Operator) -> Answer {
    direct(&app, id, Directive::Terminate, &operator).await
}

async fn direct(app: &App, id: String, directive: Directive, operator: &Operator) -> Answer {
    let workers = app.api.store.views.workers().await?;
    if workers.iter().any(|worker| worker.name == id && worker.kind == WorkerKind::Own) {
        let message = format!(
            "{id} is a worker of Turnstone's own, which is drained by a signal and not by its beats."
        );
        let hint = "Send SIGTERM to its process; GET /ojs/v1/admin/workers names host and pid.";
        return Err(OjsError { hint, ..OjsError::conflict(message) }.into());
    }
    if !app.api.store.remote.direct(&id, Some(directive)).await? {
        return Err(OjsError::not_found("worker", &id).into());
    }
    operator.did("worker.direct", &id, directive.as_str());
    let reported = DirectedWorker { id: id.clone(), worker_id: id, directive: directive.as_str() };
    Ok(reply::json(StatusCode::OK, &reported))
}
