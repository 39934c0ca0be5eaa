//! Runs: the writes.

use super::super::rows::{RunEventRow, RunRequestRow, RunSettingsRow};
use super::super::session::{Args, Session};
use super::super::statement::{Writes, as_json, execute};
use crate::runs::{Configured, News};
use crate::{StoreError, sql};
use serde_json::{Map, Value};
use turnstone_domain::{EngagementId, JobId};

/// Notes that these calls and reviews were displayed.
pub(in super::super) async fn questions_shown(
    session: &mut Session,
    questions: &[String],
) -> Result<(), StoreError> {
    for question in questions {
        let values = [question.as_str().into()];
        for text in [&sql::UPDATE_QUESTION_SHOWN, &sql::UPDATE_REMINDED_REVIEW] {
            session.execute("record a displayed question", text, Args::Values(&values)).await?;
        }
    }
    Ok(())
}

/// Moves the mark of a poll; returns true when it was at `from`.
pub(in super::super) async fn polled(
    session: &mut Session,
    request: &JobId,
    from: i64,
    to: i64,
) -> Result<bool, StoreError> {
    let values = [request.as_str().into(), from.into(), to.into()];
    Ok(session.execute("note a poll", &sql::UPDATE_RUN_SEEN, Args::Values(&values)).await? > 0)
}

/// Writes the settings of runs; returns whether `version` was the one before.
pub(in super::super) async fn configure(
    session: &mut Session,
    of: &Configured,
    version: i64,
    args: &Map<String, Value>,
) -> Result<bool, StoreError> {
    let row = RunSettingsRow {
        agent_name: of.agent.clone(),
        tenant: of.tenant.clone().unwrap_or_default(),
        run: of.run.as_ref().map_or("", EngagementId::as_str).to_owned(),
        args: as_json(args)?,
        version,
    };
    Ok(execute(session, "configure runs", &sql::INSERT_RUN_SETTINGS, vec![row], &[]).await? > 0)
}

/// The row of the run is moved first: two concurrent readers of a run meet there.
pub(in super::super) async fn advance(
    session: &mut Session,
    run: &EngagementId,
    last: i64,
    news: &News,
) -> Result<bool, StoreError> {
    let until = last.saturating_add(i64::try_from(news.events.len()).unwrap_or(i64::MAX));
    let values = [run.as_str().into(), last.into(), until.into(), news.marks.as_str().into()];
    if session.execute("move a run", &sql::INSERT_RUN, Args::Values(&values)).await? == 0 {
        return Ok(false);
    }
    let events = news.events.iter().zip(last + 1..);
    let event = |((job, body), id): (&(JobId, String), i64)| RunEventRow {
        run_id: run.clone(),
        id,
        job: job.clone(),
        body: body.clone(),
    };
    let request = |(job, began, ended): &(JobId, i64, Option<i64>)| RunRequestRow {
        run: run.clone(),
        job: job.clone(),
        began: *began,
        ended: *ended,
    };
    let (events, requests) = (events.map(event).collect(), news.requests.iter().map(request).collect());
    let mut writes = Writes::default();
    writes.all("write events of a run", &sql::INSERT_RUN_EVENTS, events);
    writes.some("write requests of a run", &sql::INSERT_RUN_REQUESTS, requests);
    writes.run(session).await?;
    Ok(true)
}
