//! `GET /ojs/v1/admin/tenants`: the tenants with jobs.

use crate::api::Shared;
use crate::parts::PagePosition;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_store::TenantTotal;
use utoipa::ToSchema;

/// A tenant that has jobs.
#[derive(Serialize, ToSchema)]
pub(crate) struct TenantItem {
    id: String,
    tenant_id: String,
    total_jobs: i64,
    /// Jobs that have not ended.
    unfinished_jobs: i64,
    /// The time of its last enqueued job, RFC 3339.
    last_job_at: String,
}

/// Tenants, by name.
#[derive(Serialize, ToSchema)]
pub(crate) struct TenantPage {
    items: Vec<TenantItem>,
    pagination: PagePosition,
}

/// Lists tenants that have jobs, by name.
#[utoipa::path(
    get, path = "/ojs/v1/admin/tenants", operation_id = "admin_list_tenants", tag = "admin",
    security(("tenant" = ["viewer"])),
    params(
        ("page" = Option<u32>, Query, description = "From 1.", minimum = 1),
        ("per_page" = Option<u32>, Query, description = "20 unless said otherwise, at most 100.", minimum = 1, maximum = 100),
        ("X-OJS-Tenant" = Option<String>, Header, description = "Only this one."),
    ),
    responses((status = 200, description = "The tenants.", body = TenantPage)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let (page, slice) = params.page()?;
    let (tenants, total) = app.api.store.operate.tenants(tenant.name(), slice).await?;
    let items = tenants.into_iter().map(TenantItem::from).collect();
    Ok(reply::ok(&TenantPage { items, pagination: PagePosition { total, page, per_page: slice.limit } }))
}

impl From<TenantTotal> for TenantItem {
    fn from(tenant: TenantTotal) -> Self {
        Self {
            id: tenant.tenant.clone(),
            tenant_id: tenant.tenant,
            total_jobs: tenant.jobs,
            unfinished_jobs: tenant.unfinished,
            last_job_at: tenant.last_at.to_rfc3339(),
        }
    }
}
