//! `DELETE /ojs/v1/admin/queues/{name}/jobs`: deletes the jobs of a queue.

use super::bulk;
use crate::api::Shared;
use crate::audit::Operator;
use crate::reply::{self, Answer};
use crate::request::{Params, Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::duration::Span;
use turnstone_ojs::OjsError;
use turnstone_store::{Bulk, JobAction, JobFilter};
use utoipa::ToSchema;

/// The outcome.
#[derive(Serialize, ToSchema)]
pub(crate) struct PurgedQueue {
    queue: String,
    matched: u64,
    purged_count: usize,
    /// Jobs that were in another state when their turn came, such as `active`.
    failed: usize,
}

/// Deletes jobs of a queue, with their history. Waiting jobs are cancelled first; active ones stay.
#[utoipa::path(
    delete, path = "/ojs/v1/admin/queues/{name}/jobs", operation_id = "admin_purge_queue", tag = "admin",
    security(("tenant" = ["operator"])),
    params(
        ("name" = String, Path, description = "The queue."),
        ("confirm" = bool, Query, description = "Has to be true."),
        ("states" = Option<String>, Query, description = "Jobs in these states, with commas between; completed, cancelled and discarded unless said otherwise."),
        ("older_than" = Option<String>, Query, description = "Accepted before then, RFC 3339, or at least as long ago, such as PT1H."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's."),
    ),
    responses((status = 200, description = "The outcome.", body = PurgedQueue)),
)]
pub(crate) async fn purge(
    State(app): State<Shared>,
    Segment(name): Segment,
    tenant: Tenant,
    operator: Operator,
    params: Params,
) -> Answer {
    if params.text("confirm") != Some("true") {
        return Err(OjsError::invalid_request("confirm", "must be true: this deletes jobs").into());
    }
    let words = params.filled("states")?.unwrap_or_default().split(',').map(str::trim);
    let states = bulk::states(words.filter(|word| !word.is_empty()), "states")?;
    let at = app.api.clock.now();
    let until =
        match params.filled("older_than")?.filter(|text| text.starts_with(['P', '-'])).map(Span::parse) {
            None => params.time("older_than")?,
            Some(Ok(age)) => Some(at.plus_ms(age.ms().saturating_neg())),
            Some(Err(why)) => return Err(OjsError::invalid_request("older_than", why).into()),
        };
    let filter =
        JobFilter { queue: Some(name.clone()), tenant: tenant.into_name(), until, ..JobFilter::default() };
    let action = JobAction::Delete;
    let bulk = Bulk { action, dead_letters: false, states, filter, most: bulk::MOST, dry_run: false, at };
    let outcome = app.api.store.operate.bulk(bulk).await?;
    let (matched, purged_count, failed) = (outcome.matched, outcome.done.len(), outcome.refused.len());
    operator.did("queue.purge", &name, &format!("{purged_count} of {matched}"));
    Ok(reply::ok(&PurgedQueue { queue: name, matched, purged_count, failed }))
}
