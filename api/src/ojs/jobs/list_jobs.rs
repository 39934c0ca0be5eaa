//! `GET /ojs/v1/admin/jobs?state=&queue=&type=&page=&per_page=`: jobs, newest first.

use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::Params;
use axum::extract::State;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_ojs::job_to_json;
use turnstone_store::JobFilter;

/// Lists jobs, newest first.
#[utoipa::path(
    get, path = "/ojs/v1/admin/jobs", tag = "admin",
    params(
        ("state" = Option<String>, Query, description = "One of the eight states."),
        ("queue" = Option<String>, Query, description = "In this queue."),
        ("type" = Option<String>, Query, description = "Of this type."),
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise, at most 100.", minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "The jobs.", body = docs::JobPage, content_type = "application/openjobspec+json")),
)]
pub(crate) async fn list_jobs(State(app): State<Shared>, params: Params) -> Answer {
    let words = JobState::ALL.map(JobState::as_str).join(", ");
    let filter = JobFilter {
        state: params.word("state", JobState::parse, &words)?,
        queue: params.text("queue").map(str::to_owned),
        job_type: params.text("type").map(str::to_owned),
    };
    let (page, slice) = params.page()?;
    let (jobs, total) = app.api.store.views.jobs(&filter, slice).await?;
    let items: Vec<Value> = jobs.iter().map(job_to_json).collect();
    Ok(reply::ok(
        &json!({"items": items, "pagination": {"total": total, "page": page, "per_page": slice.limit}}),
    ))
}
