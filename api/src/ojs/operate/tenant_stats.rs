//! `GET /ojs/v1/admin/tenants/{id}/stats`: the jobs of one tenant (OJS multi-tenancy §9).

use crate::api::Shared;
use crate::counts::{StateCounts, Throughput};
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// The jobs of one tenant.
#[derive(Serialize, ToSchema)]
pub(crate) struct TenantStats {
    tenant_id: String,
    total_jobs: u64,
    /// Jobs that have not ended.
    unfinished_jobs: u64,
    jobs: StateCounts,
    throughput: Throughput,
}

/// Counts the jobs of a tenant; one that has never had a job has none.
#[utoipa::path(
    get, path = "/ojs/v1/admin/tenants/{id}/stats", operation_id = "admin_tenant_stats", tag = "admin",
    security(("tenant" = ["viewer"])),
    params(
        ("id" = String, Path, description = "The tenant."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "The same tenant, if it is sent."),
    ),
    responses((status = 200, description = "The counts.", body = TenantStats)),
)]
pub(crate) async fn stats(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    if tenant.name().is_some_and(|name| name != id) {
        return Err(OjsError::not_found("tenant", &id).into());
    }
    let store = &app.api.store;
    let lately = app.api.clock.now().plus_ms(-Throughput::SPAN_MS);
    let jobs = StateCounts::of(store.views.counts_of(None, Some(&id)).await?);
    let throughput = Throughput::of(store.operate.ended(Some(&id), lately).await?);
    let stats = TenantStats {
        tenant_id: id,
        total_jobs: jobs.total(),
        unfinished_jobs: jobs.unfinished(),
        jobs,
        throughput,
    };
    Ok(reply::ok(&stats))
}
