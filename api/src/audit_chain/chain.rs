//! `GET /audit/chain`: the entries in order, for verification and export.

use super::DescribedEntry;
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Params;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::audit::{AuditEntry, AuditHead};
use utoipa::ToSchema;

/// The most entries of one response.
const MOST: u32 = 1_000;

/// The end of the chain.
#[derive(ToSchema)]
#[expect(dead_code, reason = "the domain's own type is serialised")]
struct ChainHead {
    /// The number of the last entry; 0 for an empty chain.
    seq: i64,
    /// The hash of the last entry; empty for an empty chain.
    hash: String,
}

/// A part of the chain.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ChainPart {
    /// In order.
    #[schema(value_type = Vec<DescribedEntry>)]
    pub entries: Vec<AuditEntry>,
    /// The end, as it was before the entries were read.
    #[schema(value_type = ChainHead)]
    pub head: AuditHead,
}

/// Returns entries of the audit in order, and the end of the chain: `turnstone audit verify` checks both.
#[utoipa::path(
    get, path = "/audit/chain", operation_id = "read_audit_chain", tag = "access",
    security(("fleet" = ["admin"])),
    params(
        ("after" = Option<i64>, Query, description = "Entries after this number; 0 by default.", minimum = 0),
        ("limit" = Option<u32>, Query, description = "1000 by default and at most.", minimum = 1, maximum = 1000),
    ),
    responses((status = 200, description = "The entries.", body = ChainPart)),
)]
pub(crate) async fn chain(State(app): State<Shared>, params: Params) -> Answer {
    let (after, limit) = (params.number("after", 0, 0, i64::MAX)?, params.number("limit", MOST, 1, MOST)?);
    let head = app.api.store.audit.head().await?;
    let entries = app.api.store.audit.after(after, limit).await?;
    Ok(reply::ok(&ChainPart { entries, head }))
}
