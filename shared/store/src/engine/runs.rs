//! Runs as the Agent Protocol shows them: the events of an engagement and of its delegates, numbered without gaps.
//!
//! Numbers are given on reading (`docs/adr/0006`). A reader of a run first writes down the new events. Written
//! numbers never change, so every client sees the same ones.

use super::ops::runs as ops;
use super::rows::{get, json};
use super::session::Args;
use super::statement::{decode_all, decode_readable};
use super::{Engine, journal};
use crate::{Page, StoreError, sql};
use async_recursion::async_recursion as boxed;
use serde_json::{Map, Value};
use std::sync::Arc;
use turnstone_domain::message::StoredMessage;
use turnstone_domain::{EngagementId, JobId, RawObject, Timestamp};

/// The position up to which a run is numbered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunPosition {
    /// The number of its last event; 0 before the first.
    pub last: i64,
    /// Up to where each engagement was read, as the reader wrote it down; empty before the first.
    pub marks: String,
}

/// A request of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRequest {
    /// The job that it is.
    pub job: JobId,
    /// The number of its first event.
    pub began: i64,
    /// The number of its last event, once it has ended.
    pub ended: Option<i64>,
    /// The position of polls without `since`.
    pub seen: i64,
}

/// An event of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunEvent {
    /// Its number: 1-based, without gaps within the run.
    pub id: i64,
    /// The request that it belongs to; `None` when that is pruned already.
    pub request: Option<JobId>,
    /// The event as it is sent: JSON.
    pub body: String,
}

/// Events of a run that are read at once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunPage {
    /// The events, oldest first.
    pub events: Vec<RunEvent>,
    /// True when there may be more already: a page ends early when its events are long.
    pub more: bool,
}

/// A run as lists show it.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRow {
    /// Its id.
    pub id: EngagementId,
    /// When it began.
    pub started_at: Timestamp,
    /// When something happened in it last.
    pub changed_at: Timestamp,
    /// The number of its last event.
    pub last: i64,
    /// Its requests, the oldest first, with the `meta` and the tenant of their jobs; at most 100.
    pub requests: Vec<(JobId, RawObject, Option<String>)>,
}

/// The next events to number.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct News {
    /// The events with the requests they belong to: JSON with the number that they get, `last + 1` and on.
    pub events: Vec<(JobId, String)>,
    /// Requests that began or ended with these events, by their numbers.
    pub requests: Vec<(JobId, i64, Option<i64>)>,
    /// Up to where each engagement is read then.
    pub marks: String,
}

/// The settings that clients stored for later requests: members of an object.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunSettings {
    /// How often that was changed; 0 when it never was.
    pub version: i64,
    /// Setting and value.
    pub args: Map<String, Value>,
}

/// The object to which settings apply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configured {
    /// The agent.
    pub agent: String,
    /// Whose runs.
    pub tenant: Option<String>,
    /// One run of them, or all.
    pub run: Option<EngagementId>,
}

/// Requests of a run that a list shows.
const REQUESTS: u32 = 100;
/// Characters of events after which a page of them ends.
const LENGTH: u32 = 1024 * 1024;

/// Keeps runs.
#[derive(Clone)]
pub struct Runs(pub(super) Arc<Engine>);

impl Runs {
    /// Returns the position up to which a run is numbered.
    #[boxed]
    pub async fn position(&self, run: &EngagementId) -> Result<RunPosition, StoreError> {
        let values = [run.as_str().into()];
        let rows = self.0.readers.read("read a run", &sql::SELECT_RUN_STATE, Args::Values(&values)).await?;
        let found =
            decode_all(&rows, |row| Ok(RunPosition { last: get(row, "told")?, marks: get(row, "marks")? }))?;
        Ok(found.into_iter().next().unwrap_or_default())
    }

    /// Numbers the events after `last`. Returns false, with nothing written, when a concurrent reader has numbered
    /// more.
    #[boxed]
    pub async fn advance(&self, run: &EngagementId, last: i64, news: News) -> Result<bool, StoreError> {
        self.0
            .write((run.clone(), last, news), |tx, (run, last, news)| {
                Box::pin(ops::advance(&mut tx.session, run, *last, news))
            })
            .await
    }

    /// Events after number `after`, oldest first; of one request or of all. At most `limit`, and fewer when they are longer than
    /// a megabyte together, but never none when there is one.
    #[boxed]
    pub async fn run_events(
        &self,
        run: &EngagementId,
        after: i64,
        request: Option<&JobId>,
        limit: u32,
    ) -> Result<RunPage, StoreError> {
        let request = request.map(JobId::as_str);
        let values = [run.as_str().into(), after.into(), request.into(), limit.into(), LENGTH.into()];
        let rows = self
            .0
            .readers
            .read("read events of a run", &sql::SELECT_RUN_EVENTS_AFTER, Args::Values(&values))
            .await?;
        let events = decode_all(&rows, |row| {
            let (id, body) = (get(row, "id")?, get(row, "body")?);
            Ok((
                RunEvent { id, request: get::<Option<String>>(row, "request")?.map(JobId), body },
                get::<i64>(row, "found")?,
            ))
        })?;
        let found = events.first().map_or(0, |(_, found)| *found);
        let more = found >= i64::from(limit) || found > i64::try_from(events.len()).unwrap_or(i64::MAX);
        Ok(RunPage { events: events.into_iter().map(|(event, _)| event).collect(), more })
    }

    /// Returns the messages of a turn, oldest first; at most `limit`.
    #[boxed]
    pub async fn said(
        &self,
        id: &EngagementId,
        turn: i64,
        limit: u32,
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let values = [id.as_str().into(), turn.into(), limit.into()];
        let rows = self
            .0
            .readers
            .read("read messages", &sql::SELECT_MESSAGES_OF_TURN, Args::Values(&values))
            .await?;
        let said = decode_all(&rows, journal::messages)?.into_iter().flatten();
        Ok(said.take(limit as usize).collect())
    }

    /// The requests of a run that have begun, in their order.
    #[boxed]
    pub async fn run_requests(&self, run: &EngagementId) -> Result<Vec<RunRequest>, StoreError> {
        let values = [run.as_str().into()];
        let (action, text) = ("read requests of a run", &sql::SELECT_RUN_REQUESTS);
        let rows = self.0.readers.read(action, text, Args::Values(&values)).await?;
        decode_all(&rows, |row| {
            Ok(RunRequest {
                job: JobId(get(row, "job_id")?),
                began: get(row, "began")?,
                ended: get(row, "ended")?,
                seen: get(row, "seen")?,
            })
        })
    }

    /// Returns the runs of an agent, the newest first; of this tenant, or of all.
    #[boxed]
    pub async fn runs_of(
        &self,
        agent: &str,
        tenant: Option<&str>,
        page: Page,
        after: Option<&str>,
    ) -> Result<Vec<RunRow>, StoreError> {
        let values = [agent.into(), tenant.into(), page.limit.into(), page.offset.into(), after.into()];
        let rows =
            self.0.readers.read("list runs", &sql::SELECT_RUNS_OF_AGENT, Args::Values(&values)).await?;
        let mut runs = decode_readable("list runs", &rows, |row| {
            Ok(RunRow {
                id: EngagementId(get(row, "id")?),
                started_at: get(row, "started_at")?,
                changed_at: get(row, "changed_at")?,
                last: get(row, "told")?,
                requests: Vec::new(),
            })
        });
        for run in &mut runs {
            let values = [run.id.as_str().into(), REQUESTS.into()];
            let (action, text) = ("list the jobs of a run", &sql::SELECT_RUN_JOBS);
            let rows = self.0.readers.read(action, text, Args::Values(&values)).await?;
            run.requests = decode_readable(action, &rows, |row| {
                Ok((JobId(get(row, "job_id")?), json(row, "meta")?, get(row, "tenant")?))
            });
        }
        Ok(runs)
    }

    /// Notes that a request was polled from number `from` up to `to`; false when a concurrent poll was noted first.
    #[boxed]
    pub async fn polled(&self, request: &JobId, from: i64, to: i64) -> Result<bool, StoreError> {
        self.0
            .write((request.clone(), from, to), |tx, (request, from, to)| {
                Box::pin(ops::polled(&mut tx.session, request, *from, *to))
            })
            .await
    }

    /// Returns the settings of exactly this object.
    #[boxed]
    pub async fn settings(&self, of: &Configured) -> Result<RunSettings, StoreError> {
        let run = of.run.as_ref().map_or("", EngagementId::as_str);
        let values = [of.agent.as_str().into(), of.tenant.as_deref().unwrap_or("").into(), run.into()];
        let (action, text) = ("read settings of runs", &sql::SELECT_RUN_SETTINGS_OF);
        let rows = self.0.readers.read(action, text, Args::Values(&values)).await?;
        let settings = decode_all(&rows, |row| {
            let settings = RunSettings { version: get(row, "version")?, args: json(row, "args")? };
            Ok((get::<String>(row, "run")?, settings))
        })?;
        Ok(settings.into_iter().find(|(of, _)| of == run).map(|(_, settings)| settings).unwrap_or_default())
    }

    /// Stores the settings if they are still at `version`; returns false when a concurrent write has changed them.
    #[boxed]
    pub async fn configure(
        &self,
        of: &Configured,
        version: i64,
        args: Map<String, Value>,
    ) -> Result<bool, StoreError> {
        self.0
            .write((of.clone(), version, args), |tx, (of, version, args)| {
                Box::pin(ops::configure(&mut tx.session, of, *version, args))
            })
            .await
    }
}
