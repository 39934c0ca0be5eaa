//! Workers in any language: fetch, ack, nack, heartbeat, saved states and progress.

mod ack;
mod activate;
mod beat;
mod fetch;
mod forget_state;
mod heartbeat;
mod nack;
mod outcome;
mod save_state;
mod shapes;
mod show_progress;
mod show_state;
mod tell_progress;
mod worker_health;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(fetch::fetch))
        .routes(routes!(fetch::fetch_with_runtime))
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
