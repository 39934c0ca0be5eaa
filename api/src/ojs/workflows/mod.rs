//! Workflows: chains, groups, batches and graphs (OJS workflows §3 to §6).

mod body;
mod cancel;
mod create;
mod list;
mod progress;
mod show;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(create::create, list::list))
        .routes(routes!(show::show, cancel::delete))
        .routes(routes!(cancel::cancel))
        .routes(routes!(progress::progress))
}
