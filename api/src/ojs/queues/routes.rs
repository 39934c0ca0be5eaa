//! The routes of the endpoints beside this file.

use super::{configure, limits, list_queues, pause, pools, put_queue, show_queue};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(list_queues::list_queues))
        .routes(routes!(list_queues::list_all))
        .routes(routes!(show_queue::show_queue, put_queue::put_queue))
        .routes(routes!(show_queue::queue_stats))
        .routes(routes!(show_queue::queue_detail))
        .routes(routes!(pause::pause))
        .routes(routes!(pause::resume))
        .routes(routes!(pause::pause_as_admin))
        .routes(routes!(pause::resume_as_admin))
        .routes(routes!(configure::configure))
        .routes(routes!(pools::list_pools))
        .routes(routes!(pools::show_pool, pools::put_pool))
        .routes(routes!(pools::scheduling_stats))
        .routes(routes!(limits::list_limits))
        .routes(routes!(limits::show_limit, limits::override_limit, limits::restore_limit))
}
