//! Runs: the writes.

use super::super::session::{Args, Session};
use super::super::statement::Writes;
use crate::runs::{Configured, News};
use crate::{StoreError, sql};
use serde_json::{Map, Value};
use turnstone_domain::{EngagementId, JobId};

/// What is asked.
pub(in super::super) enum Request {
    Tell {
        run: EngagementId,
        last: i64,
        news: News,
    },
    /// Somebody is told of these calls and reviews.
    Questions(Vec<String>),
    Polled {
        request: JobId,
        from: i64,
        to: i64,
    },
    Configure {
        of: Configured,
        version: i64,
        args: Map<String, Value>,
    },
}

/// Whether it was written, or somebody else was there before.
pub(in super::super) type Answer = bool;

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    request: &Request,
) -> Result<Answer, StoreError> {
    match request {
        Request::Tell { run, last, news } => tell(session, run, *last, news).await,
        Request::Questions(questions) => {
            for question in questions {
                let values = [question.as_str().into()];
                for text in [&sql::UPDATE_QUESTION_SHOWN, &sql::UPDATE_REMINDED_REVIEW] {
                    session.execute("note who was told of a question", text, Args::Values(&values)).await?;
                }
            }
            Ok(true)
        }
        Request::Polled { request, from, to } => {
            let values = [request.as_str().into(), (*from).into(), (*to).into()];
            let written =
                session.execute("note a poll", &sql::UPDATE_RUN_SEEN, Args::Values(&values)).await?;
            Ok(written > 0)
        }
        Request::Configure { of, version, args } => {
            let args = Value::Object(args.clone()).to_string();
            let values = [
                of.agent.as_str().into(),
                of.tenant.as_deref().unwrap_or("").into(),
                of.run.as_ref().map_or("", EngagementId::as_str).into(),
                args.as_str().into(),
                (*version).into(),
            ];
            let (action, text) = ("configure runs", &sql::INSERT_RUN_SETTINGS);
            Ok(session.execute(action, text, Args::Values(&values)).await? > 0)
        }
    }
}

/// The row of the run is moved first: it is what two who tell the same run meet at.
async fn tell<S: Session>(
    session: &mut S,
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
