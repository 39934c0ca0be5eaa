//! `GET /workers`: the workers of the fleet by name, with those that fell silent without leaving.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::show;
use axum::extract::State;
use serde_json::Value;

pub(crate) async fn list(State(app): State<Shared>) -> Answer {
    let workers = app.api.store.views.workers().await?;
    let now = app.api.clock.now();
    Ok(reply::ok(&Value::Array(workers.iter().map(|worker| show::worker(worker, now)).collect())))
}
