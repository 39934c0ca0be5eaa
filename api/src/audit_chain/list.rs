//! `GET /audit`: the newest entries.

use super::DescribedEntry;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde_json::json;
use utoipa::ToSchema;

/// Entries of the audit, the newest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described, never built")]
struct AuditList {
    entries: Vec<DescribedEntry>,
}

/// Lists the audit of the tenant, or of the fleet, the newest entries first.
#[utoipa::path(
    get, path = "/audit", operation_id = "list_audit", tag = "access",
    security(("tenant" = ["admin"])),
    params(
        ("limit" = Option<u32>, Query, description = "50 by default, at most 200.", minimum = 1, maximum = 200),
        ("offset" = Option<u32>, Query, description = "After this many."),
    ),
    responses((status = 200, description = "The entries.", body = AuditList, content_type = "application/json")),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let entries = app.api.store.audit.newest(tenant.name(), params.slice(200)?).await?;
    Ok(reply::ok(&json!({"entries": entries})))
}
