//! `GET /ojs/v1/admin/dead-letter/stats` and `GET /ojs/v1/dead-letter/stats`: the numbers of dead letters.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;
use serde::Serialize;
use std::collections::BTreeMap;
use turnstone_domain::Timestamp;
use utoipa::ToSchema;

/// How many dead letters there are.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeadLetterStats {
    total: i64,
    by_queue: BTreeMap<String, i64>,
    by_type: BTreeMap<String, i64>,
    /// When the first of them ended, RFC 3339.
    oldest_at: Option<String>,
    /// When the last of them ended, RFC 3339.
    newest_at: Option<String>,
}

/// Counts dead letters.
#[utoipa::path(
    get, path = "/ojs/v1/admin/dead-letter/stats", operation_id = "admin_dead_letter_stats", tag = "admin",
    security(("tenant" = ["viewer"])),
    params(("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's.")),
    responses((status = 200, description = "The counts.", body = DeadLetterStats)),
)]
pub(crate) async fn stats(State(app): State<Shared>, tenant: Tenant) -> Answer {
    let totals = app.api.store.operate.dead_totals(tenant.name()).await?;
    let (mut by_queue, mut by_type) = (BTreeMap::new(), BTreeMap::new());
    for total in &totals {
        *by_queue.entry(total.queue.clone()).or_default() += total.jobs;
        *by_type.entry(total.job_type.clone()).or_default() += total.jobs;
    }
    let stats = DeadLetterStats {
        total: totals.iter().map(|total| total.jobs).sum(),
        by_queue,
        by_type,
        oldest_at: totals.iter().map(|total| total.first_at).min().map(Timestamp::to_rfc3339),
        newest_at: totals.iter().map(|total| total.last_at).max().map(Timestamp::to_rfc3339),
    };
    Ok(reply::ok(&stats))
}
