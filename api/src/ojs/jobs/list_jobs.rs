//! `GET /ojs/v1/admin/jobs`: jobs by the filters of operators.

use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer, Failure};
use crate::request::{Params, Tenant};
use axum::extract::State;
use turnstone_domain::JobState;
use turnstone_ojs::job_to_json;
use turnstone_store::{JobFilter, JobOrder};

/// Lists jobs, newest first by default.
#[utoipa::path(
    get, path = "/ojs/v1/admin/jobs", tag = "admin",
    security(("tenant" = ["viewer"])),
    params(
        ("state" = Option<String>, Query, description = "One of the eight states."),
        ("queue" = Option<String>, Query, description = "In this queue."),
        ("type" = Option<String>, Query, description = "Of this type."),
        ("since" = Option<String>, Query, description = "Accepted then or later, RFC 3339."),
        ("until" = Option<String>, Query, description = "Accepted before then, RFC 3339."),
        ("sort" = Option<String>, Query, description = "created_at unless said otherwise; priority, attempt, scheduled_at or ended_at."),
        ("order" = Option<String>, Query, description = "desc unless said otherwise; or asc."),
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise, at most 100.", minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "The jobs.", body = docs::JobPage, content_type = "application/openjobspec+json")),
)]
pub(crate) async fn list_jobs(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let filter = JobFilter { tenant: tenant.into_name(), ..filter(&params)? };
    let (page, slice) = params.page()?;
    let (jobs, total) = app.api.store.views.jobs(&filter, slice).await?;
    Ok(reply::ok(&reply::page(jobs.iter().map(job_to_json), page, slice, total)))
}

/// Returns the filter of the query.
pub(in crate::ojs) fn filter(params: &Params) -> Result<JobFilter, Failure> {
    let words = JobState::ALL.map(JobState::as_str).join(", ");
    let order = |word: &str| match word {
        "created_at" => Some(JobOrder::Accepted),
        "priority" => Some(JobOrder::Priority),
        "attempt" => Some(JobOrder::Attempt),
        "scheduled_at" => Some(JobOrder::Due),
        "ended_at" => Some(JobOrder::Ended),
        _ => None,
    };
    let ascending = |word: &str| match word {
        "asc" => Some(true),
        "desc" => Some(false),
        _ => None,
    };
    Ok(JobFilter {
        state: params.word("state", JobState::parse, &words)?,
        queue: params.text("queue").map(str::to_owned),
        job_type: params.text("type").map(str::to_owned),
        tenant: None,
        since: params.time("since")?,
        until: params.time("until")?,
        order: params
            .word("sort", order, "created_at, priority, attempt, scheduled_at, ended_at")?
            .unwrap_or_default(),
        ascending: params.word("order", ascending, "asc, desc")?.unwrap_or_default(),
    })
}
