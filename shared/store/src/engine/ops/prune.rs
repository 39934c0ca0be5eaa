//! Deletes what ended long ago, with everything that belongs to it.

use super::super::columns::Columns;
use super::super::rows::{self, EndedBefore};
use super::super::session::{Args, Row, Session, limit as row_limit};
use super::super::statement::{decode_all, execute, read, read_by};
use crate::StoreError;
use crate::sql::{self, Text};
use std::collections::BTreeSet;
use turnstone_domain::{JobState, Timestamp};

/// The mark up to which commits were looked through.
const OLD_COMMITS: &str = "old_commits";

/// The statements that delete what belongs to jobs, and then the jobs.
fn of_jobs() -> impl Iterator<Item = &'static Text> {
    let also_alone = [&sql::DELETE_BUDGET_WAITS, &sql::DELETE_BREAKER_WAITS, &sql::DELETE_ERRORS];
    also_alone.into_iter().chain(&sql::DELETE_OF_JOBS)
}

/// The statements that delete what belongs to streams whose last job is gone. The first ones look at rows that
/// the others delete.
fn of_streams() -> impl Iterator<Item = &'static Text> {
    let others = [
        &sql::DELETE_JOURNAL,
        &sql::UPDATE_ARTIFACT_USES,
        &sql::DELETE_STATE_KEYS_OF_STREAMS,
        &sql::DELETE_RUN_SETTINGS,
    ];
    others.into_iter().chain(&sql::DELETE_OF_STREAMS)
}

/// Deletes at most `limit` jobs of streams that ended before `before`, or longer ago than their queue keeps them, and what
/// belongs to them, and as many deliveries of webhooks. The texts of messages go whose agent keeps them no longer. Idempotency keys
/// and keys of agents' state whose time is over by `now` go, too. Workers
/// and writers that have been silent since then are forgotten, too, and so are limits that no job names. Where history is
/// kept in partitions, those of the next jobs are made.
pub(in super::super) async fn apply(
    session: &mut Session,
    before: Timestamp,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let values = [before.0.into()];
    session.execute("forget silent workers", &sql::DELETE_SILENT_WORKERS, Args::Values(&values)).await?;
    let oldest = turnstone_domain::ids::lowest_at(before);
    session
        .execute("forget old writers", &sql::DELETE_OLD_WRITERS, Args::Values(&[oldest.as_str().into()]))
        .await?;
    session.execute("forget old batches", &sql::DELETE_OLD_BATCHES, Args::Values(&values)).await?;
    session.execute("forget old breakers", &sql::DELETE_OLD_BREAKERS, Args::Values(&values)).await?;
    let day = [turnstone_domain::budget::day_of(before).into()];
    session
        .execute("forget old days of budgets", &sql::DELETE_OLD_SHARED_BUDGETS, Args::Values(&day))
        .await?;
    session.rows("part history", &sql::SELECT_HISTORY_PARTITIONS, Args::Values(&values)).await?;
    forget_workflows(session, before, limit).await?;
    let values = [now.0.into(), row_limit(limit).into()];
    session.execute("forget keys of states", &sql::DELETE_EXPIRED_STATE_KEYS, Args::Values(&values)).await?;
    let aged =
        session.execute("delete old messages", &sql::UPDATE_AGED_MESSAGES, Args::Values(&values)).await?;
    let retired = session
        .execute("note what is deleted", &sql::UPDATE_RETIRED_ENGAGEMENTS, Args::Values(&values))
        .await?;
    let values = [before.0.into(), row_limit(limit).into()];
    let (action, text) = ("delete old deliveries", &sql::DELETE_OLD_DELIVERIES);
    let deliveries = session.execute(action, text, Args::Values(&values)).await?;
    let deliveries = usize::try_from(deliveries).unwrap_or(usize::MAX);
    let values = [now.0.into(), row_limit(limit).into()];
    let (action, text) = ("delete expired idempotency keys", &sql::DELETE_IDEMPOTENCY_KEYS);
    let expired = session.execute(action, text, Args::Values(&values)).await?;
    let expired = usize::try_from(expired).unwrap_or(usize::MAX);
    let old = old_jobs(session, before, now, limit).await?;
    // One of them may have been forked since it was found. The rows are locked now, so no more forks begin.
    let kept = sources(session, &old).await?;
    let open = open(session, &old).await?;
    let old: Vec<(i64, i64)> =
        old.into_iter().filter(|(seq, stream)| !kept.contains(seq) && !open.contains(stream)).collect();
    delete(session, &old).await?;
    let commits = forget_commits(session, limit).await?;
    let keys = forget_limits(session, limit).await?;
    let retired = usize::try_from(retired.max(aged)).unwrap_or(usize::MAX);
    Ok(old.len().max(commits).max(deliveries).max(keys).max(retired).max(expired))
}

/// Returns the jobs to delete, by seq and stream. Queues with a retention of their own are read one by one, and all
/// others together. Otherwise the jobs of a queue that keeps them longer would be looked through again and again.
async fn old_jobs(
    session: &mut Session,
    before: Timestamp,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(i64, i64)>, StoreError> {
    let decode = |row: &Row| Ok((rows::get::<i64>(row, "seq")?, rows::get::<i64>(row, "stream")?));
    let action = "look for old jobs";
    let keeping = read(session, action, &sql::SELECT_QUEUES_KEEPING_JOBS, &[], |row| {
        let kept = |name| rows::get::<Option<i64>>(row, name);
        let kept = [kept("keep_completed_ms")?, kept("keep_discarded_ms")?, kept("keep_cancelled_ms")?];
        Ok((rows::get::<String>(row, "name")?, kept))
    });
    let keeping = keeping.await?;
    if keeping.is_empty() {
        let values = [before.0.into(), row_limit(limit).into()];
        return read(session, action, &sql::LOCK_OLD_JOBS, &values, decode).await;
    }
    let ends = [JobState::Completed, JobState::Discarded, JobState::Cancelled];
    let of_queue = |(queue, kept): (String, [Option<i64>; 3])| {
        let before_of = move |kept: Option<i64>| kept.map_or(before, |ms| now.plus_ms(-ms));
        let row = move |(state, kept)| EndedBefore { queue: queue.clone(), state, before: before_of(kept) };
        ends.into_iter().zip(kept).map(row)
    };
    let (values, text) = ([row_limit(limit).into()], &sql::LOCK_OLD_JOBS_OF_QUEUES);
    let wanted = Columns::of(keeping.into_iter().flat_map(of_queue).collect(), text)?;
    let rows = session.rows(action, text, Args::Rows(wanted, &values)).await?;
    decode_all(&rows, decode)
}

/// Deletes commits whose events are all deleted, among the next `limit` after a mark; behind the newest it begins anew. Returns
/// `limit` if it is worth a look at those behind them.
async fn forget_commits(session: &mut Session, limit: usize) -> Result<usize, StoreError> {
    let number = |row: &Row| rows::get::<i64>(row, "number");
    let (action, text) = ("look for old commits", &sql::SELECT_EVENT_MARK);
    let mark = read(session, action, text, &[OLD_COMMITS.into()], number).await?;
    let from = mark.into_iter().next().unwrap_or_default();
    let values = [from.into(), row_limit(limit).into()];
    let window = read(session, action, &sql::SELECT_COMMITS_AFTER, &values, |row| {
        Ok((rows::get::<Option<i64>>(row, "number")?, rows::get::<i64>(row, "commits")?))
    });
    let Some((end, found)) = window.await?.into_iter().next() else { return Ok(0) };
    let is_full = found >= row_limit(limit);
    let to = end.filter(|_| is_full).unwrap_or_default();
    if to != from {
        let zero = || 0_i64.into();
        let values = [OLD_COMMITS.into(), from.into(), zero(), zero(), to.into(), zero(), zero()];
        session.execute("move a mark", &sql::INSERT_EVENT_MARK, Args::Values(&values)).await?;
    }
    let Some(end) = end else { return Ok(0) };
    let values = [from.into(), end.into()];
    let deleted = session.execute("delete old commits", &sql::DELETE_COMMITS, Args::Values(&values)).await?;
    Ok(if is_full && deleted > 0 { limit } else { 0 })
}

/// Forgets limits that no job names any more.
async fn forget_limits(session: &mut Session, limit: usize) -> Result<usize, StoreError> {
    let values = [row_limit(limit).into()];
    let (action, text) = ("look for unused limits", &sql::LOCK_UNUSED_RATE_KEYS);
    let unused = read(session, action, text, &values, |row| rows::get::<String>(row, "name")).await?;
    if unused.is_empty() {
        return Ok(0);
    }
    let (action, text) = ("forget unused limits", &sql::DELETE_UNUSED_RATE_KEYS);
    let forgotten = execute(session, action, text, unused, &[]).await?;
    Ok(usize::try_from(forgotten).unwrap_or(usize::MAX))
}

/// Returns those of the streams of these jobs in which an input has not ended. No input is added to them from now
/// on.
pub(in super::super) async fn open(
    session: &mut Session,
    jobs: &[(i64, i64)],
) -> Result<BTreeSet<i64>, StoreError> {
    let streams: BTreeSet<i64> = jobs.iter().map(|(_, stream)| *stream).collect();
    let keys = || streams.iter().copied().collect::<Vec<_>>();
    let seq = |row: &Row| rows::get::<i64>(row, "seq");
    read_by(session, "hold engagements", &sql::LOCK_ENGAGEMENT_TOTALS, keys(), seq).await?;
    let text = &sql::SELECT_OPEN_ENGAGEMENTS;
    let found =
        read_by(session, "look for inputs", text, keys(), |row| rows::get::<i64>(row, "engagement_seq"));
    Ok(found.await?.into_iter().collect())
}

/// Those of these jobs, by seq and stream, whose engagements forks read.
pub(in super::super) async fn sources(
    session: &mut Session,
    jobs: &[(i64, i64)],
) -> Result<BTreeSet<i64>, StoreError> {
    let streams: BTreeSet<i64> = jobs.iter().map(|(_, stream)| *stream).collect();
    let keys = streams.into_iter().collect();
    let text = &sql::SELECT_INHERITANCES_BY_SOURCE;
    let found = read_by(session, "look for forks", text, keys, |row| rows::get::<i64>(row, "source_seq"));
    let read: BTreeSet<i64> = found.await?.into_iter().collect();
    Ok(jobs.iter().filter(|(_, stream)| read.contains(stream)).map(|(seq, _)| *seq).collect())
}

/// Deletes jobs, by seq and stream, with everything that belongs to them.
pub(in super::super) async fn delete(session: &mut Session, old: &[(i64, i64)]) -> Result<(), StoreError> {
    if old.is_empty() {
        return Ok(());
    }
    let jobs = old.iter().map(|(seq, _)| *seq).collect();
    let text = &sql::SELECT_INPUT_DEFINITIONS_BY_JOB;
    let named = read_by(session, "look at old inputs", text, jobs, |row| rows::get::<String>(row, "digest"));
    let named = named.await?;
    for text in of_jobs() {
        execute(session, "delete old jobs", text, old.iter().map(|(seq, _)| *seq).collect(), &[]).await?;
    }
    let streams: BTreeSet<i64> = old.iter().map(|(_, stream)| *stream).collect();
    let keys = streams.iter().copied().collect();
    let referred =
        read_by(session, "look at old engagements", &sql::SELECT_ENGAGEMENT_REFERENCES, keys, |row| {
            Ok((rows::get::<String>(row, "digest")?, rows::get::<i64>(row, "budget_seq")?))
        });
    let (mut digests, roots): (BTreeSet<String>, BTreeSet<i64>) = referred.await?.into_iter().unzip();
    digests.extend(named);
    for text in of_streams() {
        execute(session, "delete old engagements", text, streams.iter().copied().collect(), &[]).await?;
    }
    let (action, text) = ("delete what no artifact has", &sql::DELETE_UNUSED_ARTIFACT_CONTENTS);
    session.execute(action, text, Args::Values(&[])).await?;
    // A tree spends from the budget of its root, which may be gone before the last of the tree.
    let totals = roots.union(&streams).copied().collect();
    execute(session, "delete old totals", &sql::DELETE_TOTALS, totals, &[]).await?;
    forget_definitions(session, digests).await
}

/// Deletes those of these definitions that neither an engagement, an input of one nor an agent refers to any more.
pub(super) async fn forget_definitions(
    session: &mut Session,
    digests: BTreeSet<String>,
) -> Result<(), StoreError> {
    let keys = digests.into_iter().collect();
    let (action, text) = ("look for unused definitions", &sql::LOCK_UNUSED_DEFINITIONS);
    let unused = read_by(session, action, text, keys, |row| rows::get::<String>(row, "digest")).await?;
    if unused.is_empty() {
        return Ok(());
    }
    let (action, text) = ("delete unused definitions", &sql::DELETE_UNUSED_DEFINITIONS);
    execute(session, action, text, unused, &[]).await.map(|_| ())
}

/// Deletes workflows whose jobs are gone, with their steps and events.
async fn forget_workflows(session: &mut Session, before: Timestamp, limit: usize) -> Result<(), StoreError> {
    let values = [before.0.into(), row_limit(limit).into()];
    let (action, text) = ("look for old workflows", &sql::SELECT_OLD_WORKFLOWS);
    let old = read(session, action, text, &values, |row| rows::get::<i64>(row, "seq")).await?;
    if old.is_empty() {
        return Ok(());
    }
    for text in [&sql::DELETE_WORKFLOW_STEPS, &sql::DELETE_JOURNAL, &sql::DELETE_WORKFLOWS] {
        execute(session, "delete old workflows", text, old.clone(), &[]).await?;
    }
    Ok(())
}
