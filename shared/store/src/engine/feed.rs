//! All events in one order.

use super::Engine;
use super::journal::{self, JournalEvent};
use super::rows::{Fields, Inconsistency, get};
use super::session::{Arg, Args, Row};
use super::statement::{decode_all, decode_readable};
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::feed::{Cursor, FeedEvent, FeedFilter};
use turnstone_domain::ids::is_uuid_v7;
use turnstone_domain::{EngagementId, EventName, JobId};

/// A part of the feed.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedPage {
    /// The events that the filter wants, oldest first.
    pub events: Vec<FeedEvent>,
    /// How far the reader has come, whether events were found or not.
    pub cursor: Cursor,
    /// True when there may already be more behind the cursor.
    pub has_more: bool,
}

/// The rows of the journal that one statement looks through at most.
const WINDOW: u32 = 2_000;
/// The windows that one call looks through at most: the bound of a look for something rare.
const WINDOWS: u32 = 100;

fn cursor(row: &impl Fields) -> Result<Cursor, Inconsistency> {
    let (number, commit) = (get(row, "number")?, get(row, "commit_id")?);
    Ok(Cursor { number, commit, stream: get(row, "stream")?, seq: get(row, "seq")? })
}

/// The events of a row of the journal, with the number of its commit.
fn numbered_events(row: &impl Fields) -> Result<Vec<FeedEvent>, Inconsistency> {
    let number = get(row, "number")?;
    let place = |event: FeedEvent| FeedEvent { cursor: Cursor { number, ..event.cursor }, ..event };
    Ok(events(row)?.into_iter().map(place).collect())
}

/// The events of a row of the journal.
pub(super) fn events(row: &impl Fields) -> Result<Vec<FeedEvent>, Inconsistency> {
    let (commit, stream) = (get(row, "commit_id")?, get(row, "stream")?);
    let job_id = get::<Option<String>>(row, "job_id")?.map(JobId);
    let job_type: Option<String> = get(row, "job_type")?;
    let queue: Option<String> = get(row, "queue")?;
    let tenant: Option<String> = get(row, "tenant")?;
    let engagement_id: Option<EngagementId> = get::<Option<String>>(row, "engagement_id")?.map(Into::into);
    let agent: Option<String> = get(row, "agent_name")?;
    let event = |JournalEvent { seq, name, turn, data, at }| FeedEvent {
        cursor: Cursor { number: 0, commit, stream, seq },
        name,
        job_id: job_id.clone(),
        job_type: job_type.clone(),
        queue: queue.clone(),
        tenant: tenant.clone(),
        engagement_id: engagement_id.clone(),
        agent: agent.clone(),
        turn,
        data,
        at,
    };
    Ok(journal::events(row)?.into_iter().map(event).collect())
}

/// The events of these rows that are wanted. Those of a row that cannot be read are left out.
fn wanted(rows: &[Row], filter: &FeedFilter, after: Cursor) -> Vec<FeedEvent> {
    let found = decode_readable("read events", rows, numbered_events).into_iter().flatten();
    found.filter(|event| event.cursor.place() > after.place() && filter.names.contains(&event.name)).collect()
}

/// The last event of the last of `rows`, when there may be more of them than `limit`.
fn read_up_to(rows: &[Row], limit: u32) -> Option<Cursor> {
    let last = rows.last().filter(|_| rows.len() > limit as usize)?;
    Some(Cursor {
        number: get(last, "number").ok()?,
        commit: get(last, "commit_id").ok()?,
        stream: get(last, "stream").ok()?,
        seq: get(last, "last_event").ok()?,
    })
}

/// A list as the statements take it; `None` when there is nothing on it.
fn list(items: &[String]) -> Option<String> {
    (!items.is_empty()).then(|| items.join(","))
}

fn names(filter: &FeedFilter) -> String {
    filter.names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(",")
}

/// All events in one order, which is the same for every reader and never changes. A reader that resumes at its
/// cursor misses nothing and sees nothing twice, even with concurrent writers.
///
/// The order is that of the numbers of commits (`numbering.rs`). A cursor names its commit by its identity, which is partly random. A database
/// that forgot the commit, such as a promoted standby or an older copy, does not find it and refuses the cursor.
#[derive(Clone)]
pub struct Feed(pub(super) Arc<Engine>);

impl Feed {
    /// Up to `limit` events after `after`. Looks through a bounded number of events; what is left is `has_more`.
    ///
    /// # Errors
    /// [`StoreError::CursorLost`] when this database does not have the commit that `after` names.
    #[boxed]
    pub async fn feed(&self, filter: &FeedFilter, after: Cursor, limit: u32) -> Result<FeedPage, StoreError> {
        let wanted = limit as usize;
        if let Err(error) = self.0.number_commits().await {
            // A database that takes no writes has no new events. Those with numbers can be read.
            tracing::debug!(%error, "new commits could not be numbered");
        }
        let after = self.found(after).await?;
        let mut page = FeedPage { events: Vec::new(), cursor: after, has_more: false };
        if filter.names.is_empty() {
            return Ok(page);
        }
        if let Some(job) = filter.subject.as_deref().filter(|id| is_uuid_v7(id)) {
            let mut events = self.of_job(filter, job, after, limit.saturating_add(1)).await?;
            if !events.is_empty() || self.is_job(job, filter.tenant.as_deref()).await? {
                page.has_more = events.len() > wanted;
                events.truncate(wanted);
                page.cursor = events.last().map_or(after, |last| last.cursor);
                page.events = events.into_iter().filter(|event| filter.wants(event)).collect();
                return Ok(page);
            }
        }
        for _ in 0..WINDOWS {
            let Some((end, full)) = self.window(page.cursor).await? else {
                page.has_more = false;
                return Ok(page);
            };
            let room = wanted.saturating_sub(page.events.len());
            let most = u32::try_from(room).unwrap_or(limit);
            let (found, up_to) = self.between(filter, page.cursor, end, most).await?;
            // As many as were asked for, or as many rows: there may be more in this window.
            let last = found.last().filter(|_| found.len() >= room).map(|last| last.cursor).or(up_to);
            let cut = last.is_some();
            page.cursor = last.unwrap_or(end);
            page.has_more = full || (cut && page.cursor.place() < end.place());
            page.events.extend(found.into_iter().filter(|event| filter.wants(event)));
            if !page.has_more || page.events.len() >= wanted {
                return Ok(page);
            }
        }
        Ok(page)
    }

    /// The cursor after which nothing has happened yet.
    #[boxed]
    pub async fn feed_end(&self) -> Result<Cursor, StoreError> {
        self.0.number_commits().await?;
        let (action, text) = ("look for the newest event", &sql::SELECT_FEED_END);
        let read = self.0.readers.read(action, text, Args::Values(&[])).await?;
        let end = |row: &Row| Ok(Cursor::after_all_of(get(row, "number")?, get(row, "commit_id")?));
        Ok(decode_all(&read, end)?.into_iter().next().unwrap_or_default())
    }

    /// Returns the cursor with the number of its commit.
    async fn found(&self, cursor: Cursor) -> Result<Cursor, StoreError> {
        if cursor.commit == 0 {
            return Ok(cursor);
        }
        let (action, values) = ("look for a commit", [cursor.commit.into()]);
        let read = self.0.readers.read(action, &sql::SELECT_COMMIT, Args::Values(&values)).await?;
        let number = decode_all(&read, |row| get::<i64>(row, "number"))?.into_iter().next();
        match number {
            Some(number) if cursor.number == 0 || cursor.number == number => Ok(Cursor { number, ..cursor }),
            _ => Err(StoreError::CursorLost { cursor: cursor.to_string() }),
        }
    }

    /// Where the next window ends, and whether it is full.
    async fn window(&self, after: Cursor) -> Result<Option<(Cursor, bool)>, StoreError> {
        let values = [after.number.into(), after.stream.into(), after.seq.into(), WINDOW.into()];
        let read =
            self.0.readers.read("look for events", &sql::SELECT_FEED_WINDOW, Args::Values(&values)).await?;
        let ends = decode_all(&read, |row| Ok((cursor(row)?, get::<i64>(row, "rows_found")?)))?;
        Ok(ends.into_iter().next().map(|(end, rows)| (end, rows >= i64::from(WINDOW))))
    }

    async fn between(
        &self,
        filter: &FeedFilter,
        after: Cursor,
        end: Cursor,
        limit: u32,
    ) -> Result<(Vec<FeedEvent>, Option<Cursor>), StoreError> {
        let names = names(filter);
        let (queues, job_types) = (list(&filter.queues), list(&filter.job_types));
        let values = [
            after.number.into(),
            after.stream.into(),
            after.seq.into(),
            end.number.into(),
            end.stream.into(),
            end.seq.into(),
            Arg::from(names.as_str()),
            queues.as_deref().into(),
            job_types.as_deref().into(),
            filter.tenant.as_deref().into(),
            // The first row may hold nothing that is new.
            limit.saturating_add(1).into(),
        ];
        let read = self.0.readers.read("read events", &sql::SELECT_FEED, Args::Values(&values)).await?;
        let mut found = wanted(&read, filter, after);
        found.truncate(limit as usize);
        Ok((found, read_up_to(&read, limit)))
    }

    async fn is_job(&self, id: &str, tenant: Option<&str>) -> Result<bool, StoreError> {
        let tenant = tenant.map(str::to_owned);
        let any = FeedFilter { tenant, ..FeedFilter::of_names(EventName::ALL.to_vec()) };
        Ok(!self.of_job(&any, id, Cursor::START, 1).await?.is_empty())
    }

    /// A job has few events, next to one another.
    async fn of_job(
        &self,
        filter: &FeedFilter,
        job: &str,
        after: Cursor,
        limit: u32,
    ) -> Result<Vec<FeedEvent>, StoreError> {
        let names = names(filter);
        let values = [
            job.into(),
            after.number.into(),
            after.stream.into(),
            after.seq.into(),
            Arg::from(names.as_str()),
            filter.tenant.as_deref().into(),
            limit.saturating_add(1).into(),
        ];
        let read =
            self.0.readers.read("read events", &sql::SELECT_FEED_OF_JOB, Args::Values(&values)).await?;
        Ok(wanted(&read, filter, after))
    }
}
