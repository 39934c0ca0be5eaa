//! Probes for whoever restarts or balances: neither needs a key.

mod livez;
mod readyz;

use crate::api::{App, Shared};
use axum::Router;
use axum::routing::get;
use std::time::Duration;

/// A store that has not answered by then is not well.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn routes() -> Router<Shared> {
    Router::new().route("/livez", get(livez::livez)).route("/readyz", get(readyz::readyz))
}

/// Whether the store answers within the probe's patience.
pub(crate) async fn store_answers(app: &App) -> bool {
    match tokio::time::timeout(PATIENCE, app.api.store.views.ping()).await {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::warn!(error = %turnstone_telemetry::redact(&error.to_string()), "the store is not well");
            false
        }
        Err(_) => {
            tracing::warn!(seconds = PATIENCE.as_secs(), "the store did not answer in time");
            false
        }
    }
}
