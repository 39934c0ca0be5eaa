//! `GET /ojs/v1/jobs`: jobs by the filters of clients, newest first.

use super::list_jobs::filter_of;
use crate::api::Shared;
use crate::parts::{JobPart, JobSlice};
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;

/// Lists jobs, newest first.
#[utoipa::path(
    get, path = "/ojs/v1/jobs", operation_id = "list_jobs_slice", tag = "jobs",
    security(("tenant" = ["viewer"])),
    params(
        ("state" = Option<String>, Query, description = "One of the eight states."),
        ("queue" = Option<String>, Query, description = "In this queue."),
        ("type" = Option<String>, Query, description = "Of this type."),
        ("tag" = Option<String>, Query, description = "With this tag."),
        ("agent" = Option<String>, Query, description = "Of this agent."),
        ("error_code" = Option<String>, Query, description = "Whose last error has this code."),
        ("meta" = Option<String>, Query, description = "With this value of a member of `meta`: KEY=VALUE; dots lead into objects. For lists by created_at, paged with `after`; a page may be short or empty before the end.", example = "customer=42"),
        ("after" = Option<String>, Query, description = "After the job with this id, in an order by created_at: `next_after` of the part before."),
        ("tenant" = Option<String>, Query, description = "Of this tenant, as the header X-OJS-Tenant."),
        ("since" = Option<String>, Query, description = "Accepted then or later, RFC 3339."),
        ("until" = Option<String>, Query, description = "Accepted before then, RFC 3339."),
        ("sort" = Option<String>, Query, description = "created_at unless said otherwise; priority, attempt, scheduled_at or ended_at."),
        ("order" = Option<String>, Query, description = "desc unless said otherwise; or asc."),
        ("limit" = Option<u32>, Query, description = "50 unless said otherwise.", minimum = 1, maximum = 200),
        ("offset" = Option<u32>, Query, description = "After this many.", minimum = 0),
        ("cursor" = Option<u32>, Query, description = "`next_cursor` of the part before, instead of `offset`.", minimum = 0),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's."),
    ),
    responses((status = 200, description = "The jobs.", body = JobSlice)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let (filter, slice) = (filter_of(tenant, &params)?, params.slice(200)?);
    Ok(reply::ok(&JobPart::read(&app, &filter, slice).await?.slice()))
}
