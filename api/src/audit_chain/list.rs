//! `GET /audit`: the newest entries.

use super::DescribedEntry;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Params, Tenant};
use axum::extract::State;
use serde::Serialize;
use turnstone_domain::audit::AuditEntry;
use turnstone_store::Page;
use utoipa::ToSchema;

/// Entries of the audit, the newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditList {
    /// The newest first.
    #[schema(value_type = Vec<DescribedEntry>)]
    pub entries: Vec<AuditEntry>,
    /// To be sent as `before` for the next entries; null at the end.
    next_before: Option<i64>,
}

/// Lists the audit of the tenant, or of the fleet, the newest entries first.
#[utoipa::path(
    get, path = "/audit", operation_id = "list_audit", tag = "access",
    security(("tenant" = ["admin"])),
    params(
        ("limit" = Option<u32>, Query, description = "50 by default, at most 200.", minimum = 1, maximum = 200),
        ("before" = Option<i64>, Query, description = "Entries before this number: `next_before` of the part before.", minimum = 1),
        ("offset" = Option<u32>, Query, description = "After this many."),
    ),
    responses((status = 200, description = "The entries.", body = AuditList)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant, params: Params) -> Answer {
    let slice = params.slice(200)?;
    let before = params.number("before", i64::MAX, 1, i64::MAX)?;
    let one_more = Page { limit: slice.limit + 1, ..slice };
    let mut entries = app.api.store.audit.newest(tenant.name(), one_more, Some(before)).await?;
    let has_more = entries.len() > slice.limit as usize;
    entries.truncate(slice.limit as usize);
    let next_before = entries.last().filter(|_| has_more).map(|last| last.seq);
    Ok(reply::ok(&AuditList { entries, next_before }))
}
