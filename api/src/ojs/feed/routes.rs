//! The routes of the endpoints beside this file.

use super::{list_events, stream_events};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default().routes(routes!(list_events::list_events)).routes(routes!(stream_events::stream_events))
}
