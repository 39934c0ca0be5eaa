//! `GET /ojs/v1/admin/stats/history`: jobs that ended, by the hour.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::Serialize;
use std::collections::BTreeMap;
use turnstone_domain::{JobState, Timestamp};
use turnstone_store::HourlyCount;
use utoipa::ToSchema;

const HOUR_MS: i64 = 3_600_000;
/// The longest span: a month and a day.
const MOST_HOURS: i64 = 32 * 24;

/// Jobs that ended within an hour.
#[derive(Serialize, ToSchema, Default)]
pub(crate) struct Hour {
    /// The hour's beginning, RFC 3339.
    hour: String,
    /// Completed and discarded.
    processed: i64,
    /// Discarded.
    failed: i64,
    completed: i64,
    cancelled: i64,
    discarded: i64,
    /// Tokens that they used.
    tokens: i64,
    /// From acceptance to end.
    average_ms: i64,
}

/// Hours in which jobs ended, oldest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct History {
    items: Vec<Hour>,
    /// The first hour that was searched, RFC 3339.
    since: String,
}

/// Jobs that ended, by the hour. They are counted within a minute, and stay counted when the jobs are deleted; a tenant's
/// are counted from the jobs that are still kept.
#[utoipa::path(
    get, path = "/ojs/v1/admin/stats/history", operation_id = "admin_stats_history", tag = "admin",
    security(("tenant" = ["viewer"])),
    params(
        ("hours" = Option<i64>, Query, description = "How far back; 24 unless said otherwise.", minimum = 1, maximum = 768),
        ("queue" = Option<String>, Query, description = "Only of this queue."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's jobs."),
    ),
    responses((status = 200, description = "The hours.", body = History)),
)]
pub(crate) async fn history(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let hours = params.number("hours", 24, 1, MOST_HOURS)?;
    let Timestamp(now) = app.api.clock.now();
    let since = Timestamp((now / HOUR_MS - (hours - 1)) * HOUR_MS);
    let counted = match tenant.name() {
        None => app.api.store.views.statistics(since).await?,
        Some(tenant) => app.api.store.operate.history_of(tenant, since).await?,
    };
    let queue = params.text("queue");
    let counted = counted.into_iter().filter(|count| queue.is_none_or(|queue| count.queue == queue));
    Ok(reply::ok(&History { items: by_hour(counted), since: since.to_rfc3339() }))
}

fn by_hour(counted: impl Iterator<Item = HourlyCount>) -> Vec<Hour> {
    let mut hours: BTreeMap<Timestamp, (Hour, i64)> = BTreeMap::new();
    for count in counted {
        let (hour, took_ms) = hours.entry(count.hour).or_default();
        *took_ms += count.took_ms;
        hour.tokens += count.tokens;
        match count.state {
            JobState::Completed => hour.completed += count.jobs,
            JobState::Cancelled => hour.cancelled += count.jobs,
            _ => hour.discarded += count.jobs,
        }
    }
    let whole = |(at, (hour, took_ms)): (Timestamp, (Hour, i64))| Hour {
        hour: at.to_rfc3339(),
        processed: hour.completed + hour.discarded,
        failed: hour.discarded,
        average_ms: took_ms / (hour.completed + hour.cancelled + hour.discarded).max(1),
        ..hour
    };
    hours.into_iter().map(whole).collect()
}
