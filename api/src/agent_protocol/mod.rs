//! The Agent Protocol (draft, 2025 edition): every registered agent, in any format, over REST and server-sent events.
//!
//! A run is an engagement, a request is a job that carries one input into it. [`run_events`] writes the events of a run;
//! the endpoints read them.

mod begin;
mod cancel;
mod configure;
mod configured;
mod describe;
mod discover;
mod find;
mod getevents;
mod name;
mod process;
mod request_id;
mod request_types;
mod resume;
mod run_events;
mod runs;
mod status;
mod stream;

pub(crate) use stream::RunStream;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .routes(routes!(discover::discover))
        .routes(routes!(discover::discover_here))
        .routes(routes!(describe::describe))
        .routes(routes!(process::process))
        .routes(routes!(process::stream_request))
        .routes(routes!(getevents::of_subject))
        .routes(routes!(getevents::of_parameter))
        .routes(routes!(getevents::of_run))
        .routes(routes!(status::status))
        .routes(routes!(runs::runs))
}
