//! `POST /ojs/v1/jobs/batch`: many jobs, all or none (OJS core §7, OJS bulk operations §3).

use super::accept_all::{Members, refused};
use super::enqueue::{as_it_stands, stands_as_sent, stored};
use super::idempotency::{IdempotencyKey, KeyedRequest};
use crate::api::{App, Shared};
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, RequestId, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use turnstone_domain::terms::{OnConflict, Unique};
use turnstone_domain::{NewJob, RawObject};
use turnstone_ojs::{Enqueue, JobBody, OjsError, accepted};
use turnstone_store::{Pushed, RecordedPush};
use utoipa::ToSchema;

/// A batch has at most this many jobs.
const MAX_JOBS: usize = 1000;

/// Jobs to be enqueued together.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"jobs": [{"type": "email.send", "args": ["ada@example.com"]}, {"type": "email.send", "args": ["bob@example.com"]}]}))]
pub(crate) struct Batch {
    #[schema(value_type = Vec<Enqueue>, min_items = 1, max_items = 1000)]
    jobs: Vec<RawObject>,
}

/// The jobs in the order of the request.
#[derive(Serialize, ToSchema)]
pub(crate) struct BatchReply {
    /// As they were stored.
    pub jobs: Vec<JobBody>,
    count: usize,
}

/// Accepts up to 1,000 jobs, all or none. They are durable when the response is 201.
#[utoipa::path(
    post, path = "/ojs/v1/jobs/batch", tag = "jobs",
    security(("tenant" = ["submitter"])),
    params(
        ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the jobs."),
        ("X-Request-Id" = Option<String>, Header, description = "Kept in each job's meta.request_id."),
        ("Idempotency-Key" = Option<String>, Header, max_length = 255,
         description = "For 24 hours the same body under the same key is the same batch and gets the same answer; another body is 409."),
    ),
    request_body = Batch,
    responses((status = 201, description = "All jobs are accepted.", body = BatchReply)),
)]
pub(crate) async fn batch(
    State(app): State<Shared>,
    tenant: Tenant,
    request: RequestId,
    key: IdempotencyKey,
    JsonBytes(body): JsonBytes,
) -> Answer {
    let key = key.of(&app, "POST /ojs/v1/jobs/batch", &body);
    if let Some(key) = &key
        && let Some(recorded) = key.recorded(&app).await?
    {
        return repeated(&app, key, recorded).await;
    }
    let Batch { jobs: sent } = turnstone_ojs::request::read(&body)?;
    if !(1..=MAX_JOBS).contains(&sent.len()) {
        let why = format!("must have 1 to {MAX_JOBS} items, not {}", sent.len());
        return Err(OjsError::invalid_request("jobs", why).into());
    }
    let mut members = Members::new(&app, &tenant, app.api.clock.now());
    let mut jobs = Vec::with_capacity(sent.len());
    for (at, mut fields) in sent.into_iter().enumerate() {
        request.keep(&mut fields);
        jobs.push(members.accept(fields, &place(at), at).await?);
    }
    let refused = |error| refused(error, jobs.iter().enumerate().map(|(at, job)| (job, place(at))));
    let body = match &key {
        None => {
            let pushed = app.api.store.intake.push(jobs.clone()).await.map_err(refused)?;
            stored_all(&app, jobs, &pushed).await?
        }
        Some(key) => {
            let sent = jobs.clone();
            let at_once = move |pushed: &[Pushed]| all_as_sent(&sent, pushed);
            let recorded = key.push(&app, jobs.clone(), at_once).await.map_err(refused)?;
            let recorded = key.check(recorded)?;
            match recorded.answer {
                Some(body) => body,
                None if recorded.repeated => return repeated(&app, key, recorded).await,
                None => key.record(&app, stored_all(&app, jobs, &recorded.pushed).await?).await?,
            }
        }
    };
    Ok(reply::json_text(StatusCode::CREATED, body))
}

/// Returns the response to a request that was applied before. If none was recorded, it is made from the jobs as they
/// are now.
async fn repeated(app: &App, key: &KeyedRequest, recorded: RecordedPush) -> Answer {
    let body = match recorded.answer {
        Some(body) => body,
        None => {
            let mut jobs = Vec::with_capacity(recorded.pushed.len());
            for pushed in &recorded.pushed {
                jobs.push(JobBody::from(&as_it_stands(app, pushed).await?));
            }
            key.record(app, text(jobs)?).await?
        }
    };
    Ok(reply::json_text(StatusCode::CREATED, body))
}

/// Returns the body with the jobs as they were sent; `None` where one has to be read from the store.
fn all_as_sent(jobs: &[NewJob], pushed: &[Pushed]) -> Option<String> {
    let replaced = may_be_replaced(jobs);
    let shown = |(job, pushed): (&NewJob, &Pushed)| {
        let known = stands_as_sent(job, pushed) && !(replaced && job.terms.unique.is_some());
        known.then(|| JobBody::from(&accepted(job.clone(), pushed.state)))
    };
    let jobs = jobs.iter().zip(pushed).map(shown).collect::<Option<Vec<_>>>()?;
    text(jobs).ok()
}

/// Returns the body with the jobs as they are now.
async fn stored_all(app: &App, jobs: Vec<NewJob>, pushed: &[Pushed]) -> Result<String, Failure> {
    let replaced = may_be_replaced(&jobs);
    let mut shown = Vec::with_capacity(jobs.len());
    for (job, pushed) in jobs.into_iter().zip(pushed) {
        let asks_again = replaced && job.terms.unique.is_some();
        let job =
            if asks_again { as_it_stands(app, pushed).await? } else { stored(app, job, pushed).await? };
        shown.push(JobBody::from(&job));
    }
    text(shown)
}

fn text(jobs: Vec<JobBody>) -> Result<String, Failure> {
    let count = jobs.len();
    reply::text(&BatchReply { jobs, count })
}

/// Returns whether a later member of the batch may have replaced an earlier one.
fn may_be_replaced(jobs: &[NewJob]) -> bool {
    jobs.iter().any(|job| job.terms.unique.as_ref().is_some_and(replaces))
}

fn replaces(unique: &Unique) -> bool {
    matches!(unique.on_conflict, OnConflict::Replace | OnConflict::ReplaceExceptSchedule)
}

fn place(at: usize) -> String {
    format!("jobs[{at}]")
}
