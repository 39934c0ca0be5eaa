//! The routes of the endpoints beside this file.

use super::{
    ack, activate, beat, fetch, forget_state, heartbeat, nack, save_state, show_progress, show_state,
    tell_progress, worker_health,
};
use crate::alias::alias;
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(fetch::fetch))
        .routes(alias(routes!(fetch::fetch), "/ojs/v1/jobs/fetch", "workers", ["fetch_with_runtime"]))
        .routes(routes!(ack::ack))
        .routes(routes!(ack::ack_job))
        .routes(routes!(nack::nack))
        .routes(routes!(nack::nack_job))
        .routes(routes!(heartbeat::heartbeat))
        .routes(routes!(beat::beat))
        .routes(routes!(worker_health::worker_health))
        .routes(routes!(activate::activate))
        .routes(routes!(
            save_state::save_state,
            save_state::post_state,
            show_state::show_state,
            forget_state::forget_state
        ))
        .routes(routes!(tell_progress::tell_progress, show_progress::show_progress))
}
