//! `turnstone queue limits`: the rate limits that jobs share by key.

use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use std::process::ExitCode;
use turnstone_api::answers::LimitReply;

const COLUMNS: &[Column<LimitReply>] = &[
    column("KEY", |limit| plain(&limit.key)),
    column("ACTIVE", |limit| plain(&limit.concurrency.active)),
    column("AT MOST", |limit| plain(&limit.concurrency.limit)),
    column("WAITING", |limit| plain(&limit.waiting_count)),
];

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let path = ["ojs", "v1", "rate-limits"];
    let (limits, _) = session.client()?.slices(&path, &[], "rate_limits", usize::MAX).await?;
    session.output.list(&limits, |limit| &limit.key, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
