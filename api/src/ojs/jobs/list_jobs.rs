//! `GET /ojs/v1/admin/jobs`: jobs by the filters of operators.

use crate::api::{App, Shared};
use crate::parts::{JobPage, JobPart};
use crate::reply::{self, Answer, Failure};
use crate::request::{Params, Tenant};
use axum::extract::State;
use turnstone_domain::{JobId, JobState};
use turnstone_ojs::OjsError;
use turnstone_store::{JobFilter, JobOrder};

/// Lists jobs, newest first by default.
#[utoipa::path(
    get, path = "/ojs/v1/admin/jobs", tag = "admin",
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
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise, at most 100.", minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "The jobs.", body = JobPage)),
)]
pub(crate) async fn list_jobs(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    answer(&app, &filter_of(tenant, &params)?, &params).await
}

/// Answers with a page of the jobs of a filter.
pub(in crate::ojs) async fn answer(app: &App, filter: &JobFilter, params: &Params) -> Answer {
    let (page, slice) = params.page()?;
    Ok(reply::ok(&JobPart::read(app, filter, slice).await?.page(page)))
}

/// Returns the filter of the query, for the tenant of the header or of the query.
pub(super) fn filter_of(tenant: Tenant, params: &Params) -> Result<JobFilter, Failure> {
    let header = tenant.into_name();
    let named = params.text("tenant").map(str::to_owned);
    if header.is_some() && named.is_some() && header != named {
        let why = "differs from the tenant of the request, whose jobs alone are listed; leave it out";
        return Err(OjsError::invalid_request("tenant", why).into());
    }
    Ok(JobFilter { tenant: header.or(named), ..filter(params)? })
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
    let by = params.word("sort", order, "created_at, priority, attempt, scheduled_at, ended_at")?;
    let after = params.text("after").map(|id| JobId(id.to_owned()));
    let meta = meta(params)?;
    if by.unwrap_or_default() != JobOrder::Accepted {
        let why = "continues a list by created_at only; page with `offset` or `page` in another order";
        if after.is_some() {
            return Err(OjsError::invalid_request("after", why).into());
        }
        if meta.is_some() {
            let why = "filters a list by created_at only; leave `sort` out";
            return Err(OjsError::invalid_request("meta", why).into());
        }
    }
    let moves = |name: &&str| params.text(name).is_some_and(|at| !["0", "1"].contains(&at));
    if let Some(name) = ["page", "offset", "cursor"].into_iter().find(moves) {
        if after.is_some() {
            let why = "replaces `page`, `offset` and `cursor`; send it without them";
            return Err(OjsError::invalid_request("after", why).into());
        }
        if meta.is_some() {
            let why = "cannot page a list by `meta`; send `after` with `next_after` of the part before";
            return Err(OjsError::invalid_request(name, why).into());
        }
    }
    Ok(JobFilter {
        state: params.word("state", JobState::parse, &words)?,
        queue: params.text("queue").map(str::to_owned),
        job_type: params.text("type").map(str::to_owned),
        tenant: None,
        since: params.time("since")?,
        until: params.time("until")?,
        tag: params.text("tag").map(str::to_owned),
        agent: params.text("agent").map(str::to_owned),
        error_code: params.text("error_code").map(str::to_owned),
        meta,
        after,
        order: by.unwrap_or_default(),
        ascending: params.word("order", ascending, "asc, desc")?.unwrap_or_default(),
    })
}

/// Reads the parameter `meta`: the path of a member, and its value.
fn meta(params: &Params) -> Result<Option<(String, String)>, Failure> {
    let Some(text) = params.text("meta") else { return Ok(None) };
    match text.split_once('=').filter(|(path, _)| !path.is_empty()) {
        Some((path, value)) => Ok(Some((path.to_owned(), value.to_owned()))),
        None => {
            let why = "must be a member of `meta` with its value, such as customer=42 or user.id=ada";
            Err(OjsError::invalid_request("meta", why).into())
        }
    }
}
