//! `GET /ojs/v1/jobs`: jobs by the filters of clients, newest first.

use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use turnstone_ojs::job_to_json;
use turnstone_store::JobFilter;

/// Lists jobs, newest first.
#[utoipa::path(
    get, path = "/ojs/v1/jobs", operation_id = "list_jobs_slice", tag = "jobs",
    security(("tenant" = ["viewer"])),
    params(
        ("state" = Option<String>, Query, description = "One of the eight states."),
        ("queue" = Option<String>, Query, description = "In this queue."),
        ("type" = Option<String>, Query, description = "Of this type."),
        ("since" = Option<String>, Query, description = "Accepted then or later, RFC 3339."),
        ("until" = Option<String>, Query, description = "Accepted before then, RFC 3339."),
        ("sort" = Option<String>, Query, description = "created_at unless said otherwise; priority, attempt, scheduled_at or ended_at."),
        ("order" = Option<String>, Query, description = "desc unless said otherwise; or asc."),
        ("limit" = Option<u32>, Query, description = "50 unless said otherwise.", minimum = 1, maximum = 200),
        ("offset" = Option<u32>, Query, description = "After this many.", minimum = 0),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's."),
    ),
    responses((status = 200, description = "The jobs.", body = docs::JobSlice, content_type = "application/openjobspec+json")),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let filter = JobFilter { tenant: tenant.into_name(), ..super::list_jobs::filter(&params)? };
    let slice = params.slice(200)?;
    let (jobs, total) = app.api.store.views.jobs(&filter, slice).await?;
    Ok(reply::ok(&reply::slice("jobs", jobs.iter().map(job_to_json), slice, total)))
}
