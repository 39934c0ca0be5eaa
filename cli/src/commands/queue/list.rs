//! `turnstone queue list`: queues with the jobs in each, and those that ended within the last hour.

use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use std::process::ExitCode;
use turnstone_api::answers::CountedQueue;

const COLUMNS: &[Column<CountedQueue>] = &[
    column("NAME", |queue| plain(&queue.name)),
    column("STATE", |queue| queue.state.clone()),
    column("AVAILABLE", |queue| plain(&queue.counts.available)),
    column("ACTIVE", |queue| plain(&queue.counts.active)),
    column("SCHEDULED", |queue| plain(&queue.counts.scheduled)),
    column("RETRYABLE", |queue| plain(&queue.counts.retryable)),
    column("PENDING", |queue| plain(&queue.counts.pending)),
    column("DISCARDED", |queue| plain(&queue.counts.discarded)),
    column("COMPLETED/H", |queue| plain(&queue.last_hour.completed)),
    column("FAILED/H", |queue| plain(&queue.last_hour.discarded)),
];

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let (queues, _) = session.client()?.list(super::QUEUES.path, &[], usize::MAX).await?;
    session.output.list(&queues, |queue| &queue.name, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
