//! The routes of the endpoints beside this file.

use super::{aliases, change_cron, forget_cron, history, list_crons, put_cron, show_cron, trigger};
use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Returns every route of this folder.
pub(crate) fn all() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(list_crons::list_crons, put_cron::put_cron))
        .routes(routes!(show_cron::show_cron, change_cron::change_cron, forget_cron::forget_cron))
        .routes(routes!(trigger::trigger))
        .routes(routes!(history::history))
        .routes(routes!(aliases::list, aliases::put))
        .routes(routes!(aliases::show, aliases::change, aliases::forget))
}
