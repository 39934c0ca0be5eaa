//! `POST /ojs/v1/cron`: make an entry, or replace the one of its name, which keeps its age and its counts.

use super::{CronReply, find};
use crate::api::Shared;
use crate::blocking;
use crate::docs;
use crate::ojs::jobs::submitter;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Tenant};
use axum::extract::State;
use axum::http::StatusCode;
use turnstone_domain::cron::{CronEntry, Schedule};
use turnstone_ojs::body;
use turnstone_ojs::cron::{self, PutCron};

/// Makes a cron entry, or replaces the one of its name.
#[utoipa::path(
    post, path = "/ojs/v1/cron", tag = "cron",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    request_body = PutCron,
    responses(
        (status = 200, description = "An entry of this name is replaced; its counts stay.", body = CronReply),
        (status = 201, description = "The entry is new.", body = CronReply),
        (status = 400, description = "Something cannot be read; the message says what.", body = docs::ErrorReply),
        (status = 409, description = "The tenant has as many entries as it may have.", body = docs::ErrorReply),
    ),
)]
pub(crate) async fn put_cron(
    State(app): State<Shared>,
    tenant: Tenant,
    JsonBytes(bytes): JsonBytes,
) -> Answer {
    let now = app.api.clock.now();
    let mut sent = body::read_object(&bytes)?;
    submitter::apply_to_template(&mut sent, &tenant.principal)?;
    submitter::check_template(&app, &sent, &tenant).await?;
    let owner = tenant.name().map(str::to_owned);
    let entry = blocking::run(move || cron::read_entry(sent, owner.as_deref(), now)).await??;
    let own = tenant.of_owner(tenant.name().map(str::to_owned));
    let known = app.api.store.crons.cron(&entry.name, own.name()).await?;
    let entry = continued(entry, known);
    let new = app.api.store.crons.put(entry.clone(), app.api.options.caps.crons).await?;
    let stored = find(&app, &entry.name, &own).await?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(reply::json(status, &CronReply::from(stored)))
}

/// Lets a period keep the beginning of the replaced entry.
fn continued(entry: CronEntry, known: Option<CronEntry>) -> CronEntry {
    let Some(known) = known.filter(|_| entry.enabled) else { return entry };
    let schedule = Schedule::parse(&entry.expression, &entry.timezone);
    let next_run_at =
        schedule.ok().and_then(|schedule| schedule.next_after(entry.updated_at, known.created_at));
    CronEntry { next_run_at, ..entry }
}
