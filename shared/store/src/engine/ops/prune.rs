//! Deletes what ended long ago, with everything that belongs to it.

use super::super::columns::Columns;
use super::super::rows;
use super::super::session::{Args, Session, limit as row_limit};
use super::super::statement::read;
use crate::sql::{self, Text};
use crate::{StoreError, sql::PRUNE_WORKERS};
use std::collections::BTreeSet;
use turnstone_domain::Timestamp;

/// What belongs to one job.
const OF_JOBS: &[&Text] = &[
    &sql::PRUNE_CHECKPOINTS,
    &sql::PRUNE_TOOL_CALLS,
    &sql::PRUNE_TOOL_RETRIES,
    &sql::PRUNE_BRANCHES,
    &sql::PRUNE_REVIEWS,
    &sql::PRUNE_RESULTS,
    &sql::PRUNE_ERRORS,
    &sql::PRUNE_SAVED_STATES,
    &sql::PRUNE_PROGRESS,
    &sql::PRUNE_ENVELOPES,
    &sql::PRUNE_JOBS,
];

/// What belongs to a stream whose last job is gone: an engagement, or a plain job.
const OF_STREAMS: &[&Text] =
    &[&sql::PRUNE_EVENTS, &sql::PRUNE_MESSAGES, &sql::PRUNE_ENGAGEMENTS, &sql::PRUNE_BUDGETS];

/// Deletes at most `limit` jobs of streams that ended before `before`, and what belongs to them, and as many
/// deliveries of webhooks. Workers and writers that have been silent since then are forgotten, too. Where history is kept in partitions, those of the next jobs are made.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    before: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let values = [before.0.into()];
    session.execute("forget silent workers", &PRUNE_WORKERS, Args::Values(&values)).await?;
    let oldest = turnstone_domain::ids::lowest_at(before);
    session
        .execute("forget old writers", &sql::PRUNE_WRITERS, Args::Values(&[oldest.as_str().into()]))
        .await?;
    session.execute("forget old breakers", &sql::PRUNE_BREAKERS, Args::Values(&values)).await?;
    session.rows("part history", &sql::PRUNE_HISTORY, Args::Values(&values)).await?;
    forget_workflows(session, before, limit).await?;
    let values = [before.0.into(), row_limit(limit).into()];
    let (action, text) = ("delete old deliveries", &sql::PRUNE_DELIVERIES);
    let deliveries = session.execute(action, text, Args::Values(&values)).await?;
    let deliveries = usize::try_from(deliveries).unwrap_or(usize::MAX);
    let decode = |row: &S::Row| Ok((rows::get::<i64>(row, "seq")?, rows::get::<i64>(row, "stream")?));
    let old = read(session, "look for old jobs", &sql::JOBS_PRUNABLE, &values, decode).await?;
    delete(session, &old).await?;
    Ok(old.len().max(deliveries))
}

/// Deletes jobs, by seq and stream, with everything that belongs to them.
pub(in super::super) async fn delete<S: Session>(
    session: &mut S,
    old: &[(i64, i64)],
) -> Result<(), StoreError> {
    if old.is_empty() {
        return Ok(());
    }
    for text in OF_JOBS {
        let keys = Columns::of(old.iter().map(|(seq, _)| (*seq,)).collect());
        session.execute("delete old jobs", text, Args::Rows(keys, &[])).await?;
    }
    let streams: BTreeSet<i64> = old.iter().map(|(_, stream)| *stream).collect();
    for text in OF_STREAMS {
        let keys = Columns::of(streams.iter().map(|stream| (*stream,)).collect());
        session.execute("delete old engagements", text, Args::Rows(keys, &[])).await?;
    }
    Ok(())
}

/// Deletes workflows whose jobs are gone, with their steps and events.
async fn forget_workflows<S: Session>(
    session: &mut S,
    before: Timestamp,
    limit: usize,
) -> Result<(), StoreError> {
    let values = [before.0.into(), row_limit(limit).into()];
    let (action, text) = ("look for old workflows", &sql::WORKFLOWS_PRUNABLE);
    let old = read(session, action, text, &values, |row| rows::get::<i64>(row, "seq")).await?;
    if old.is_empty() {
        return Ok(());
    }
    for text in [&sql::PRUNE_WORKFLOW_STEPS, &sql::PRUNE_EVENTS, &sql::PRUNE_WORKFLOWS] {
        let keys = Columns::of(old.iter().map(|seq| (*seq,)).collect());
        session.execute("delete old workflows", text, Args::Rows(keys, &[])).await?;
    }
    Ok(())
}
