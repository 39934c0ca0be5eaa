//! `GET /workers`: the workers of the fleet by name, including silent ones that did not leave.

use crate::api::Shared;
use crate::docs::rows;
use crate::reply::{self, Answer};
use crate::show;
use axum::extract::State;
use serde_json::Value;

/// The workers of the fleet, by name, including silent ones that did not leave.
#[utoipa::path(
    get, path = "/workers", operation_id = "list_workers", tag = "fleet",
    security(("fleet" = ["viewer"])),
    responses((status = 200, description = "The workers.", body = [rows::Worker])),
)]
pub(crate) async fn list(State(app): State<Shared>) -> Answer {
    let workers = app.api.store.views.workers().await?;
    let now = app.api.clock.now();
    Ok(reply::ok(&Value::Array(workers.iter().map(|worker| show::worker(worker, now)).collect())))
}
