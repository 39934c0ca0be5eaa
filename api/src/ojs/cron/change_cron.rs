//! `PATCH /ojs/v1/cron/{name}`: changes an entry; members that are not sent stay as they are.

use super::{CronReply, find};
use crate::api::Shared;
use crate::blocking;
use crate::ojs::jobs::submitter;
use crate::reply::{self, Answer};
use crate::request::{JsonBytes, Segment, Tenant};
use axum::extract::State;
use turnstone_domain::cron::CronChange;
use turnstone_domain::principal::WorkKind;
use turnstone_ojs::cron::{self, ChangeCron};
use turnstone_ojs::{OjsError, body};

/// Changes a cron entry. Members that are not sent stay as they are. The principal must be allowed to act for the user
/// of the entry; an operator may also switch it on and off.
#[utoipa::path(
    patch, path = "/ojs/v1/cron/{name}", tag = "cron",
    security(("tenant" = ["submitter"]), ("tenant" = ["operator"])),
    params(("name" = String, Path, description = "The entry.")),
    request_body = ChangeCron,
    responses((status = 200, description = "The entry as it is now.", body = CronReply)),
)]
pub(crate) async fn change_cron(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    JsonBytes(bytes): JsonBytes,
) -> Answer {
    let now = app.api.clock.now();
    let entry = find(&app, &name, &tenant).await?;
    let (mut sent, known) = (body::read_object(&bytes)?, entry.clone());
    if sent.given("job_template").is_some() || sent.contains("type") {
        // The entry moves to the user of the new request.
        submitter::apply_to_template(&mut sent, &tenant.principal)?;
        submitter::check_template(&app, &sent, &tenant).await?;
    } else {
        let switches = sent.names().all(|name| name == "enabled");
        let kind = if switches { WorkKind::Unchanged } else { WorkKind::Chosen };
        submitter::check_stored(&cron::template_of(&entry)?, &tenant.principal, kind)?;
    }
    let change = blocking::run(move || cron::read_change(sent, &known, now)).await??;
    // The checked request is written as well: a concurrent change may have replaced it by another user's.
    let change = CronChange { template: change.template.or(Some(entry.template)), ..change };
    let owner = tenant.of_owner(entry.tenant);
    if !app.api.store.crons.change(&name, owner.name(), change, now).await? {
        return Err(OjsError::not_found("cron entry", &name).into());
    }
    Ok(reply::ok(&CronReply::from(find(&app, &name, &owner).await?)))
}
