//! `GET /ojs/v1/cron?enabled=`: entries by name.

use super::CronList;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use turnstone_domain::{RawJson, RawObject};
use turnstone_ojs::OjsError;
use turnstone_ojs::cron::entry_to_json;

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
    let shown: Vec<RawObject> = entries.iter().map(entry_to_json).collect();
    let unwritable = |_| OjsError::internal("The entries could not be written.");
    let list = serde_json::to_string(&shown).and_then(RawJson::from_text).map_err(unwritable)?;
    let mut out = RawObject::new();
    out.insert("crons", list.clone());
    out.insert("cron_jobs", list);
    out.insert("count", shown.len());
    Ok(reply::json(axum::http::StatusCode::OK, &out))
}
