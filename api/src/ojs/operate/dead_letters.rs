//! `GET /ojs/v1/dead-letter` (OJS dead letter §4.1) and `GET /ojs/v1/admin/dead-letter`: jobs that failed for good and are
//! kept for a decision, newest first.

use crate::api::{App, Shared};
use crate::parts::{CursorPosition, PagePosition, bodies, placed};
use crate::reply::{self, Answer, Failure};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::JobId;
use turnstone_ojs::JobBody;
use turnstone_store::JobFilter;
use utoipa::ToSchema;

/// A part of the list of dead letters.
#[derive(Serialize, ToSchema)]
struct DeadLetters {
    jobs: Vec<JobBody>,
    pagination: CursorPosition,
}

/// A page of dead letters.
#[derive(Serialize, ToSchema)]
struct DeadLetterPage {
    items: Vec<JobBody>,
    pagination: PagePosition,
}

/// Lists dead letters, newest first.
#[utoipa::path(
    get, path = "/ojs/v1/dead-letter", operation_id = "list_dead_letters", tag = "dead letters",
    security(("tenant" = ["viewer"])),
    params(
        ("queue" = Option<String>, Query, description = "In this queue."),
        ("type" = Option<String>, Query, description = "Of this type."),
        ("tag" = Option<String>, Query, description = "With this tag."),
        ("since" = Option<String>, Query, description = "Accepted then or later, RFC 3339."),
        ("until" = Option<String>, Query, description = "Accepted before then, RFC 3339."),
        ("after" = Option<String>, Query, description = "After the job with this id, instead of `offset`: the last one of the part before."),
        ("limit" = Option<u32>, Query, description = "50 unless said otherwise.", minimum = 1, maximum = 100),
        ("offset" = Option<u32>, Query, description = "After this many.", minimum = 0),
        ("cursor" = Option<u32>, Query, description = "`next_cursor` of the part before, instead of `offset`.", minimum = 0),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's."),
    ),
    responses((status = 200, description = "The dead letters.", body = DeadLetters)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let slice = params.slice(100)?;
    let (jobs, total) =
        app.api.store.operate.dead_letters(&filter(&app, tenant, &params).await?, slice).await?;
    Ok(reply::ok(&DeadLetters { jobs: bodies(&jobs), pagination: CursorPosition::of(slice, total) }))
}

/// Lists dead letters by pages, newest first.
#[utoipa::path(
    get, path = "/ojs/v1/admin/dead-letter", tag = "admin",
    security(("tenant" = ["viewer"])),
    params(
        ("queue" = Option<String>, Query, description = "In this queue."),
        ("type" = Option<String>, Query, description = "Of this type."),
        ("tag" = Option<String>, Query, description = "With this tag."),
        ("since" = Option<String>, Query, description = "Accepted then or later, RFC 3339."),
        ("until" = Option<String>, Query, description = "Accepted before then, RFC 3339."),
        ("after" = Option<String>, Query, description = "After the job with this id, instead of `page`: the last one of the page before."),
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise, at most 100.", minimum = 1, maximum = 100),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's."),
    ),
    responses((status = 200, description = "The dead letters.", body = DeadLetterPage)),
)]
pub(crate) async fn list_for_admins(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let (page, slice) = params.page()?;
    let (jobs, total) =
        app.api.store.operate.dead_letters(&filter(&app, tenant, &params).await?, slice).await?;
    let pagination = PagePosition { total, page, per_page: slice.limit };
    Ok(reply::ok(&DeadLetterPage { items: bodies(&jobs), pagination }))
}

async fn filter(app: &App, tenant: Tenant, params: &Params) -> Result<JobFilter, Failure> {
    let filter = JobFilter {
        queue: params.text("queue").map(str::to_owned),
        job_type: params.text("type").map(str::to_owned),
        tenant: tenant.into_name(),
        since: params.time("since")?,
        until: params.time("until")?,
        after: params.after().map(JobId::from),
        tag: params.text("tag").map(str::to_owned),
        ..JobFilter::default()
    };
    placed(app, filter).await
}
