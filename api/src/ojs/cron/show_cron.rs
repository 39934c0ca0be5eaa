//! `GET /ojs/v1/cron/{name}`.

use super::{CronReply, find};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;

/// One cron entry.
#[utoipa::path(
    get, path = "/ojs/v1/cron/{name}", tag = "cron",
    security(("tenant" = ["viewer"])),
    params(("name" = String, Path, description = "The entry.")),
    responses((status = 200, description = "The entry.", body = CronReply)),
)]
pub(crate) async fn show_cron(State(app): State<Shared>, Segment(name): Segment, tenant: Tenant) -> Answer {
    Ok(reply::ok(&CronReply::from(find(&app, &name, &tenant).await?)))
}
