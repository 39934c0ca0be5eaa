//! `GET /metrics`: the metrics for Prometheus, as `text/plain` without parameters (OJS observability §4).

use crate::api::Shared;
use crate::reply::Answer;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use turnstone_ojs::OjsError;

/// The metrics for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "server",
    security(("fleet" = ["viewer"])),
    responses((status = 200, description = "Counters and gauges in the text format of Prometheus.", body = String,
               content_type = "text/plain")),
)]
pub(crate) async fn metrics(State(app): State<Shared>) -> Answer {
    let Some(metrics) = &app.metrics else {
        return Err(OjsError::internal("Nothing is counted; the log of the start says why.").into());
    };
    match metrics.text(&app.api.store, app.api.clock.now()).await {
        Ok(text) => Ok(([(CONTENT_TYPE, "text/plain")], text).into_response()),
        Err(error) => {
            tracing::error!(%error, "metrics could not be written");
            Err(OjsError::internal("The metrics could not be written.").into())
        }
    }
}
