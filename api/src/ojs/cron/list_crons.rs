//! `GET /ojs/v1/cron?enabled=`: entries by name.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_ojs::cron::CronBody;
use utoipa::ToSchema;

/// Cron entries by name, under both of their names.
#[derive(Serialize, ToSchema)]
struct CronList {
    crons: Vec<CronBody>,
    cron_jobs: Vec<CronBody>,
    count: usize,
}

/// Lists cron entries by name.
#[utoipa::path(
    get, path = "/ojs/v1/cron", tag = "cron",
    security(("tenant" = ["viewer"])),
    params(("enabled" = Option<bool>, Query, description = "Only those that are, or that are not.")),
    responses((status = 200, description = "The entries.", body = CronList)),
)]
pub(crate) async fn list_crons(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let read = |text: &str| text.parse::<bool>().ok();
    let enabled = params.word("enabled", read, "true, false")?;
    let entries = app.api.store.crons.crons(tenant.name(), enabled).await?;
    let crons: Vec<_> = entries.iter().map(CronBody::from).collect();
    Ok(reply::ok(&CronList { cron_jobs: crons.clone(), count: crons.len(), crons }))
}
