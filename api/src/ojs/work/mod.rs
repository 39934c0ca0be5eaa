//! Workers in any language: fetch, ack, nack, heartbeat, saved states and progress.

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
}
