//! The fleet itself: who works in it.

mod workers;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default().routes(routes!(workers::list))
}
