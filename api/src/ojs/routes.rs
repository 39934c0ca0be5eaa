//! The routes of the endpoints beside this file.

use super::{attest, control, cron, feed, jobs, operate, queues, schemas, server, webhooks, work, workflows};
use crate::api::Routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .merge(server::routes::all())
        .merge(jobs::routes::all())
        .merge(work::routes::all())
        .merge(queues::routes::all())
        .merge(operate::routes::all())
        .merge(workflows::routes::all())
        .merge(cron::routes::all())
        .merge(schemas::routes::all())
        .merge(webhooks::routes::all())
        .merge(feed::routes::all())
        .merge(control::routes::all())
        .merge(attest::routes::all())
}
