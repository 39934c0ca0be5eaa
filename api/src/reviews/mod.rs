//! The inbox of reviews: list, show, approve, reject.

mod decide;
mod list;
mod show;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list::list))
        .routes(routes!(show::show))
        .routes(routes!(decide::approve))
        .routes(routes!(decide::reject))
}
