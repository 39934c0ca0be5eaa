//! `GET /ojs/v1/cron/{name}/history?limit=`: the outcomes of the latest occurrences.

use super::find;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::cron::Outcome;
use turnstone_ojs::JobBody;
use turnstone_ojs::cron::CronRunBody;
use utoipa::ToSchema;

/// The latest occurrences of an entry, newest first, and the jobs that they made, as far as they are kept.
#[derive(Serialize, ToSchema)]
struct CronHistory {
    name: String,
    runs: Vec<CronRunBody>,
    jobs: Vec<JobBody>,
}

/// The latest occurrences of a cron entry, newest first, and the jobs that they made.
#[utoipa::path(
    get, path = "/ojs/v1/cron/{name}/history", operation_id = "cron_history", tag = "cron",
    security(("tenant" = ["viewer"])),
    params(
        ("name" = String, Path, description = "The entry."),
        ("limit" = Option<u32>, Query, description = "20 unless said otherwise; 100 are remembered.",
         minimum = 1, maximum = 100),
    ),
    responses((status = 200, description = "The occurrences.", body = CronHistory)),
)]
pub(crate) async fn history(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    params: Params,
) -> Answer {
    let limit: u32 = params.number("limit", 20, 1, 100)?;
    let entry = find(&app, &name, &tenant).await?;
    let runs = app.api.store.crons.history(&entry, limit).await?;
    let mut jobs = Vec::new();
    for id in
        runs.iter().filter(|run| run.outcome == Outcome::Triggered).filter_map(|run| run.job_id.as_ref())
    {
        jobs.extend(app.api.store.views.job(id).await?.as_ref().map(JobBody::from));
    }
    Ok(reply::ok(&CronHistory { name, runs: runs.into_iter().map(CronRunBody::from).collect(), jobs }))
}
