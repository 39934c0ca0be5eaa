//! Streams of events: of an engagement, or of one job.

use super::feed;
use super::rows::get;
use super::session::{Args, Row};
use super::statement::{decode_all, decode_readable};
use super::views::{Views, by_keys, one, stream_of};
use crate::{EventFilter, StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::ops::RangeInclusive;
use turnstone_domain::feed::{FeedEvent, StreamCursor};

impl Views {
    /// [`Views::events_after`] in the form of the feed (see [`crate::Feed`]): the `seq` of their cursors is their position here.
    ///
    /// # Errors
    /// [`StoreError::CursorLost`] when another commit wrote the event at this position, or when there are fewer events: a
    /// failover or an older copy replaced what the reader has read.
    #[boxed]
    pub async fn feed_events_after(
        &self,
        filter: &EventFilter,
        after: StreamCursor,
        limit: u32,
    ) -> Result<Vec<FeedEvent>, StoreError> {
        let (text, id) = stream_of(filter);
        // With the row of the last event that was read.
        let (from, rows) = (after.seq.saturating_sub(1), limit.saturating_add(1));
        let values = [id.into(), from.into(), rows.into()];
        let read = self.0.readers.read("read events", text, Args::Values(&values)).await?;
        if after.seq > 0 && !self.holds(filter, after, &read).await? {
            return Err(StoreError::CursorLost { cursor: after.to_string() });
        }
        let found = decode_readable("read events", &read, feed::events);
        let new = |event: &FeedEvent| event.cursor.seq > after.seq;
        Ok(found.into_iter().flatten().filter(new).take(limit as usize).collect())
    }

    /// Returns true if the reader's last event is in the stream. `rows` begin with the row that has it.
    async fn holds(&self, filter: &EventFilter, at: StreamCursor, rows: &[Row]) -> Result<bool, StoreError> {
        let first = decode_all(rows.get(..1).unwrap_or_default(), |row| {
            let (last, events) = (get::<i64>(row, "last_event")?, get::<i64>(row, "events")?);
            Ok((last - events + 1..=last, get::<i64>(row, "commit_id")?))
        });
        let has_it = |(numbers, _): &(RangeInclusive<i64>, i64)| numbers.contains(&at.seq);
        if let Some((_, commit)) = first?.into_iter().next().filter(has_it) {
            return Ok(at.commit.is_none_or(|read| read == commit));
        }
        match at.commit {
            Some(_) => Ok(false),
            // The number of an event of another job of the engagement.
            None => Ok(!rows.is_empty() || at.seq <= self.newest_event(filter).await?.seq),
        }
    }

    /// Returns the position of the newest event of the stream of a job or an engagement.
    #[boxed]
    pub async fn newest_event(&self, filter: &EventFilter) -> Result<StreamCursor, StoreError> {
        let (text, id) = match filter {
            EventFilter::Engagement(id) => (&sql::SELECT_NEWEST_EVENT_OF_ENGAGEMENT, id.as_str()),
            EventFilter::Job(id) => (&sql::SELECT_NEWEST_EVENT_OF_JOB, id.as_str()),
        };
        let (action, values) = ("look for the newest event", [id.into()]);
        let newest = one(&self.0.readers, action, text, &values, |row| {
            Ok(StreamCursor { seq: get(row, "last_event")?, commit: Some(get(row, "commit_id")?) })
        });
        Ok(newest.await?.unwrap_or_default())
    }

    /// Returns the numbers of events of these streams, by the names in their hints ([`crate::Ring::Events`]): engagements, and jobs
    /// that have none. Unknown names are left out.
    #[boxed]
    pub async fn newest_events(&self, streams: Vec<String>) -> Result<Vec<(String, i64)>, StoreError> {
        let (action, text) = ("read how far streams are", &sql::SELECT_NEWEST_EVENTS);
        by_keys(&self.0.readers, action, text, (streams, &[]), |row| {
            Ok((get(row, "id")?, get(row, "events")?))
        })
        .await
    }
}
