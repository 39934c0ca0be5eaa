//! `POST /ojs/v1/cron/{name}/trigger`: makes a job now, besides the entry's times. The request is explicit, so neither
//! the overlap policy nor `enabled` prevents the job.

use super::{CronReply, find};
use crate::api::Shared;
use crate::ojs::jobs::accept::accept_stored;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use turnstone_ojs::{JobBody, OjsError, cron};
use utoipa::ToSchema;

/// The job that a trigger made, and its entry.
#[derive(Serialize, ToSchema)]
struct TriggeredCron {
    job: JobBody,
    job_id: String,
    #[serde(flatten)]
    reply: CronReply,
}

/// Makes a job of a cron entry now, regardless of its overlap policy.
#[utoipa::path(
    post, path = "/ojs/v1/cron/{name}/trigger", tag = "cron",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(("name" = String, Path, description = "The entry.")),
    responses((status = 201, description = "The job is accepted.", body = TriggeredCron)),
)]
pub(crate) async fn trigger(State(app): State<Shared>, Segment(name): Segment, tenant: Tenant) -> Answer {
    let now = app.api.clock.now();
    let entry = find(&app, &name, &tenant).await?;
    let owner = tenant.of_owner(entry.tenant.clone());
    let mut job = accept_stored(&app, cron::template_of(&entry)?, &owner, now).await?;
    cron::stamp(&mut job, &entry, now, now);
    let id = app.api.store.crons.trigger(&entry, job, now).await?;
    let job = app.api.store.views.job(&id).await?.ok_or_else(|| OjsError::not_found("job", id.shown()))?;
    let reply = find(&app, &name, &owner).await?.into();
    let triggered = TriggeredCron { job: JobBody::from(&job), job_id: id.to_string(), reply };
    Ok(reply::json(StatusCode::CREATED, &triggered))
}
