//! Runs: the calls.

use super::ops::runs::Request as Asked;
use super::rows::{get, json, maybe, time};
use super::session::{Args, Reader};
use super::statement::decode_all;
use super::writer::{Answer, Request};
use super::{Engine, journal};
use crate::runs::{Configured, News, RunEvent, RunPage, RunRequest, RunRow, RunSettings, Runs, Told};
use crate::{Page, StoreError, sql};
use async_trait::async_trait;
use serde_json::{Map, Value};
use turnstone_domain::message::StoredMessage;
use turnstone_domain::{EngagementId, JobId};

/// Requests of a run that a list shows.
const REQUESTS: u32 = 100;
/// Characters of events after which a page of them ends.
const LENGTH: u32 = 1024 * 1024;

impl<R: Reader> Engine<R> {
    async fn of_runs(&self, asked: Asked) -> Result<bool, StoreError> {
        match self.request(Request::Runs(asked)).await? {
            Answer::Runs(written) => Ok(written),
            _ => Err(StoreError::Closed),
        }
    }
}

#[async_trait]
impl<R: Reader> Runs for Engine<R> {
    async fn told(&self, run: &EngagementId) -> Result<Told, StoreError> {
        let values = [run.as_str().into()];
        let rows = self.readers.read("read a run", &sql::SELECT_RUN_STATE, Args::Values(&values)).await?;
        let told = decode_all(&rows, |row| Ok(Told { last: get(row, "told")?, marks: get(row, "marks")? }))?;
        Ok(told.into_iter().next().unwrap_or_default())
    }

    async fn tell(&self, run: &EngagementId, last: i64, news: News) -> Result<bool, StoreError> {
        self.of_runs(Asked::Tell { run: run.clone(), last, news }).await
    }

    async fn run_events(
        &self,
        run: &EngagementId,
        after: i64,
        request: Option<&JobId>,
        limit: u32,
    ) -> Result<RunPage, StoreError> {
        let request = request.map(JobId::as_str);
        let values = [run.as_str().into(), after.into(), request.into(), limit.into(), LENGTH.into()];
        let rows = self
            .readers
            .read("read events of a run", &sql::SELECT_RUN_EVENTS_AFTER, Args::Values(&values))
            .await?;
        let events = decode_all(&rows, |row| {
            let (id, body) = (get(row, "id")?, get(row, "body")?);
            Ok((
                RunEvent { id, request: maybe::<String>(row, "request")?.map(JobId), body },
                get::<i64>(row, "found")?,
            ))
        })?;
        let found = events.first().map_or(0, |(_, found)| *found);
        let more = found >= i64::from(limit) || found > i64::try_from(events.len()).unwrap_or(i64::MAX);
        Ok(RunPage { events: events.into_iter().map(|(event, _)| event).collect(), more })
    }

    async fn said(&self, id: &EngagementId, turn: i64, limit: u32) -> Result<Vec<StoredMessage>, StoreError> {
        let values = [id.as_str().into(), turn.into(), limit.into()];
        let rows =
            self.readers.read("read messages", &sql::SELECT_MESSAGES_OF_TURN, Args::Values(&values)).await?;
        let said = decode_all(&rows, journal::messages)?.into_iter().flatten();
        Ok(said.take(limit as usize).collect())
    }

    async fn run_requests(&self, run: &EngagementId) -> Result<Vec<RunRequest>, StoreError> {
        let values = [run.as_str().into()];
        let (action, text) = ("read requests of a run", &sql::SELECT_RUN_REQUESTS);
        let rows = self.readers.read(action, text, Args::Values(&values)).await?;
        decode_all(&rows, |row| {
            Ok(RunRequest {
                job: JobId(get(row, "job_id")?),
                began: get(row, "began")?,
                ended: maybe(row, "ended")?,
                seen: get(row, "seen")?,
            })
        })
    }

    async fn runs_of(
        &self,
        agent: &str,
        tenant: Option<&str>,
        page: Page,
    ) -> Result<Vec<RunRow>, StoreError> {
        let values = [agent.into(), tenant.into(), page.limit.into(), page.offset.into()];
        let rows = self.readers.read("list runs", &sql::SELECT_RUNS_OF_AGENT, Args::Values(&values)).await?;
        let mut runs = decode_all(&rows, |row| {
            Ok(RunRow {
                id: EngagementId(get(row, "id")?),
                started_at: time(row, "started_at")?,
                changed_at: time(row, "changed_at")?,
                last: get(row, "told")?,
                requests: Vec::new(),
            })
        })?;
        for run in &mut runs {
            let values = [run.id.as_str().into(), REQUESTS.into()];
            let (action, text) = ("list the jobs of a run", &sql::SELECT_RUN_JOBS);
            let rows = self.readers.read(action, text, Args::Values(&values)).await?;
            run.requests = decode_all(&rows, |row| {
                Ok((JobId(get(row, "job_id")?), json(row, "meta")?, maybe(row, "tenant")?))
            })?;
        }
        Ok(runs)
    }

    async fn polled(&self, request: &JobId, from: i64, to: i64) -> Result<bool, StoreError> {
        self.of_runs(Asked::Polled { request: request.clone(), from, to }).await
    }

    async fn settings(&self, of: &Configured) -> Result<RunSettings, StoreError> {
        let run = of.run.as_ref().map_or("", EngagementId::as_str);
        let values = [of.agent.as_str().into(), of.tenant.as_deref().unwrap_or("").into(), run.into()];
        let (action, text) = ("read settings of runs", &sql::SELECT_RUN_SETTINGS_OF);
        let rows = self.readers.read(action, text, Args::Values(&values)).await?;
        let settings = decode_all(&rows, |row| {
            let settings = RunSettings { version: get(row, "version")?, args: json(row, "args")? };
            Ok((get::<String>(row, "run")?, settings))
        })?;
        Ok(settings.into_iter().find(|(of, _)| of == run).map(|(_, settings)| settings).unwrap_or_default())
    }

    async fn configure(
        &self,
        of: &Configured,
        version: i64,
        args: Map<String, Value>,
    ) -> Result<bool, StoreError> {
        self.of_runs(Asked::Configure { of: of.clone(), version, args }).await
    }
}
