//! Probes for whoever restarts or balances: neither needs a key.

mod livez;
mod readyz;

use crate::api::{App, Shared};
use serde::Serialize;
use std::time::Duration;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// A store that has not answered by then is not well.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(livez::livez))
        .routes(routes!(readyz::readyz))
        .routes(routes!(readyz::ready))
}

/// How something is, in one word.
#[derive(Serialize, ToSchema)]
pub(crate) struct Status {
    #[schema(example = "ok")]
    status: &'static str,
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
