//! `DELETE /ojs/v1/cron/{name}`: deletes the entry and its history; the jobs that it made stay.

use super::CronReply;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// An entry that was deleted.
#[derive(Serialize, ToSchema)]
struct ForgottenCron {
    #[serde(flatten)]
    reply: CronReply,
    deleted: bool,
    name: String,
}

/// Deletes a cron entry and its history. The jobs that it made stay.
#[utoipa::path(
    delete, path = "/ojs/v1/cron/{name}", tag = "cron",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(("name" = String, Path, description = "The entry.")),
    responses((status = 200, description = "The entry as it was.", body = ForgottenCron)),
)]
pub(crate) async fn forget_cron(State(app): State<Shared>, Segment(name): Segment, tenant: Tenant) -> Answer {
    let Some(entry) = app.api.store.crons.forget(&name, tenant.name()).await? else {
        return Err(OjsError::not_found("cron entry", &name).into());
    };
    Ok(reply::ok(&ForgottenCron { reply: entry.into(), deleted: true, name }))
}
