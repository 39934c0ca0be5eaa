//! `POST /ojs/v1/workers/fetch` (OJS HTTP binding §5.4) and `POST /ojs/v1/jobs/fetch`, which is the same with a runtime.

use super::shapes;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Tenant};
use axum::extract::State;
use turnstone_ojs::work::FetchBody;
use turnstone_ojs::{JobBody, request};
use turnstone_store::{ClaimRequest, DEFAULT_VISIBILITY_MS, FetchedJob, JobKind};

/// Gives plain jobs to a worker, the left queue first. No job is no error. Jobs whose runtime tags the worker lacks are left
/// for others.
#[utoipa::path(
    post, path = "/ojs/v1/workers/fetch", tag = "workers",
    security(("tenant" = ["worker"])),
    request_body = FetchBody,
    responses((status = 200, description = "The jobs, each active and reserved.", body = shapes::Fetched)),
)]
pub(crate) async fn fetch(State(app): State<Shared>, tenant: Tenant, JsonBytes(body): JsonBytes) -> Answer {
    let requested: FetchBody = request::read(&body)?;
    let request = ClaimRequest {
        kind: JobKind::Plain,
        limit: requested.most(),
        queues: requested.queues,
        worker_id: requested.worker_id.unwrap_or_default(),
        lease_ms: requested.visibility_timeout_ms.unwrap_or(DEFAULT_VISIBILITY_MS),
        tenant: tenant.into_name(),
        runtime_tags: requested.runtime.map(|runtime| runtime.tags.unwrap_or_default()),
        now: app.api.clock.now(),
    };
    let jobs = app.api.store.remote.fetch(request).await?;
    let shown = |fetched: FetchedJob| {
        let FetchedJob { job, token } = fetched;
        JobBody { ext_lease_token: Some(token), ..JobBody::from(&job) }
    };
    Ok(reply::ok(&shapes::Fetched { jobs: jobs.into_iter().map(shown).collect() }))
}
