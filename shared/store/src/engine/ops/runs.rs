//! Runs: the writes.

use super::super::session::{Args, Session};
use super::super::statement::{Writes, as_json};
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
            session.execute("note who was told of a question", text, Args::Values(&values)).await?;
        }
    }
    Ok(())
}

/// Moves the mark of a poll; returns whether it stood at `from`.
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
    let args = as_json(args)?;
    let values = [
        of.agent.as_str().into(),
        of.tenant.as_deref().unwrap_or("").into(),
        of.run.as_ref().map_or("", EngagementId::as_str).into(),
        args.as_str().into(),
        version.into(),
    ];
    let (action, text) = ("configure runs", &sql::INSERT_RUN_SETTINGS);
    Ok(session.execute(action, text, Args::Values(&values)).await? > 0)
}

/// The row of the run is moved first: it is what two who tell the same run meet at.
pub(in super::super) async fn tell(
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
    let of_run = || run.as_str().to_owned();
    let events = news.events.iter().zip(last + 1..);
    let events = events.map(|((job, body), id)| (of_run(), id, job.clone(), body.clone())).collect();
    let requests = news.requests.iter();
    let requests = requests.map(|(job, began, ended)| (of_run(), job.clone(), *began, *ended)).collect();
    let mut writes = Writes::default();
    writes.all("write events of a run", &sql::INSERT_RUN_EVENTS, events);
    writes.if_new("write requests of a run", &sql::INSERT_RUN_REQUESTS, requests);
    writes.run(session).await?;
    Ok(true)
}
