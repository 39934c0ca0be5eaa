//! The fleet itself: who works in it, and what it leaves alone for a while.

mod breakers;
mod reset_breaker;
mod workers;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(workers::list))
        .routes(routes!(breakers::list))
        .routes(routes!(reset_breaker::reset))
}
