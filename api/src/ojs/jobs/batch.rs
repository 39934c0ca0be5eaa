//! `POST /ojs/v1/jobs/batch`: many jobs, all or none (OJS core §7, OJS bulk operations §3).

use super::accept_all::{Members, refused};
use super::enqueue::{as_it_stands, stored};
use crate::api::Shared;
use crate::docs;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, RequestId, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use turnstone_domain::RawJson;
use turnstone_domain::terms::{OnConflict, Unique};
use turnstone_ojs::{Fields, OjsError, job_to_json};
use utoipa::ToSchema;

/// A batch has at most this many jobs.
const MAX_JOBS: usize = 1000;

/// Jobs to be enqueued together.
#[derive(ToSchema)]
#[schema(example = json!({"jobs": [{"type": "email.send", "args": ["ada@example.com"]}, {"type": "email.send", "args": ["bob@example.com"]}]}))]
#[expect(dead_code, reason = "described, never built")]
pub(crate) struct Batch {
    #[schema(min_items = 1, max_items = 1000)]
    jobs: Vec<docs::Enqueue>,
}

/// The jobs in the order of the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct BatchReply {
    #[schema(value_type = Vec<docs::Job>)]
    jobs: Vec<RawJson>,
    count: usize,
}

/// Accepts up to 1,000 jobs, all or none. They are durable when 201 is answered.
#[utoipa::path(
    post, path = "/ojs/v1/jobs/batch", tag = "jobs",
    params(
        ("X-OJS-Tenant" = Option<String>, Header, description = "Whose jobs they are."),
        ("X-Request-Id" = Option<String>, Header, description = "Kept in each job's meta.request_id."),
    ),
    request_body(content = Batch, content_type = "application/openjobspec+json"),
    responses((status = 201, description = "All jobs are accepted.", body = BatchReply,
               content_type = "application/openjobspec+json")),
)]
pub(crate) async fn batch(
    State(app): State<Shared>,
    tenant: Tenant,
    request: RequestId,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let sent = Fields::read(&body)?.objects("jobs")?;
    let sent = sent.ok_or_else(|| OjsError::invalid_request("jobs", "is missing"))?;
    if !(1..=MAX_JOBS).contains(&sent.len()) {
        let why = format!("must have 1 to {MAX_JOBS} items, not {}", sent.len());
        return Err(OjsError::invalid_request("jobs", why).into());
    }
    let mut members = Members::new(&app, tenant.name(), app.api.clock.now());
    let mut jobs = Vec::with_capacity(sent.len());
    for (at, mut fields) in sent.into_iter().enumerate() {
        request.keep(&mut fields);
        jobs.push(members.accept(fields, &place(at), at).await?);
    }
    let places = || jobs.iter().enumerate().map(|(at, job)| (job, place(at)));
    let pushed = app.api.store.intake.push(jobs.clone()).await;
    let pushed = pushed.map_err(|error| refused(error, places()))?;
    let mut reply = BatchReply { jobs: Vec::with_capacity(jobs.len()), count: jobs.len() };
    // A member may have been replaced by one that stands behind it.
    let replaced = jobs.iter().any(|job| job.terms.unique.as_ref().is_some_and(replaces));
    for (job, pushed) in jobs.into_iter().zip(pushed) {
        let asks_again = replaced && job.terms.unique.is_some();
        let job =
            if asks_again { as_it_stands(&app, &pushed).await? } else { stored(&app, job, &pushed).await? };
        reply.jobs.push(job_to_json(&job).to_raw());
    }
    Ok(reply::json(StatusCode::CREATED, &reply))
}

fn replaces(unique: &Unique) -> bool {
    matches!(unique.on_conflict, OnConflict::Replace | OnConflict::ReplaceExceptSchedule)
}

fn place(at: usize) -> String {
    format!("jobs[{at}]")
}
