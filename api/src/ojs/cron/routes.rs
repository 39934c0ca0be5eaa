//! The routes of the endpoints beside this file.

use super::{change_cron, forget_cron, history, list_crons, put_cron, show_cron, trigger};
use crate::alias::alias;
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(list_crons::list_crons, put_cron::put_cron))
        .routes(routes!(show_cron::show_cron, change_cron::change_cron, forget_cron::forget_cron))
        .routes(routes!(trigger::trigger))
        .routes(routes!(history::history))
        .routes(alias(
            routes!(list_crons::list_crons, put_cron::put_cron),
            "/ojs/v1/crons",
            "cron",
            ["list_crons_alias", "put_cron_alias"],
        ))
        .routes(alias(
            routes!(show_cron::show_cron, change_cron::change_cron, forget_cron::forget_cron),
            "/ojs/v1/crons/{id}",
            "cron",
            ["show_cron_alias", "delete_cron_alias", "change"],
        ))
}
