//! The OJS HTTP binding, a folder per concern.

pub(crate) mod attest;
mod control;
mod cron;
mod feed;
pub(crate) mod jobs;
mod operate;
mod queues;
pub(crate) mod schemas;
mod server;
mod webhooks;
mod work;
mod workflows;

use crate::api::Shared;
use utoipa_axum::router::OpenApiRouter;

pub(crate) use operate::reset::{PATH as RESET, route as reset};

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::default()
        .merge(server::routes())
        .merge(jobs::routes())
        .merge(work::routes())
        .merge(queues::routes())
        .merge(operate::routes())
        .merge(workflows::routes())
        .merge(cron::routes())
        .merge(schemas::routes())
        .merge(webhooks::routes())
        .merge(feed::routes())
        .merge(control::routes())
        .merge(attest::routes())
}
