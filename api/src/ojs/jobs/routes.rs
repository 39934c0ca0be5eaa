//! The routes of the endpoints beside this file.

use super::{batch, cancel_job, enqueue, job_events, list_jobs, list_slice, show_job, show_result};
use crate::api::Routes;
use utoipa_axum::routes;

pub(crate) fn all() -> Routes {
    Routes::default()
        .routes(routes!(enqueue::enqueue, list_slice::list))
        .routes(routes!(batch::batch))
        .routes(routes!(show_job::show_job, cancel_job::delete_job))
        .routes(routes!(cancel_job::cancel_job))
        .routes(routes!(job_events::job_events))
        .routes(routes!(show_result::show_result))
        .routes(routes!(list_jobs::list_jobs))
}
