//! `GET /ojs/v1/admin/stats`: the server at a glance.

use crate::api::Shared;
use crate::counts::{StateCounts, Throughput};
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// The server at a glance.
#[derive(Serialize, ToSchema)]
pub(crate) struct Stats {
    /// Queues that are known.
    queues: usize,
    /// Workers with a recent heartbeat.
    workers: usize,
    jobs: StateCounts,
    throughput: Throughput,
    uptime_seconds: i64,
}

/// How many queues, workers and jobs there are, and how fast jobs end.
#[utoipa::path(
    get, path = "/ojs/v1/admin/stats", operation_id = "admin_stats", tag = "admin",
    security(("tenant" = ["viewer"])),
    params(("X-OJS-Tenant" = Option<String>, Header, description = "Only this tenant's jobs.")),
    responses((status = 200, description = "The counts.", body = Stats)),
)]
pub(crate) async fn stats(State(app): State<Shared>, tenant: Tenant) -> Answer {
    let (store, now) = (&app.api.store, app.api.clock.now());
    let lately = now.plus_ms(-Throughput::SPAN_MS);
    let workers = store.views.workers().await?;
    let stats = Stats {
        queues: store.views.queues().await?.len(),
        workers: workers.iter().filter(|worker| worker.is_alive(now)).count(),
        jobs: StateCounts::of(store.views.counts_of(None, tenant.name()).await?),
        throughput: Throughput::of(store.operate.ended(tenant.name(), lately).await?),
        uptime_seconds: now.since(app.started_at) / 1000,
    };
    Ok(reply::ok(&stats))
}
