//! The routes of the endpoints beside this file.

use super::{list_events, stream_events};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list_events::list_events))
        .routes(routes!(stream_events::stream_events))
}
