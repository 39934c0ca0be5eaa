//! `GET /agents/{name}/getevents/{id}`: the events of a request or of a run, as a list or as a stream.

use super::find::{self, Subject};
use super::{configured, resume, run_events, stream};
use crate::api::{App, Shared};
use crate::caller::Who;
use crate::reply::{self, Answer, Failure};
use crate::request::{Params, Segment, Segments};
use crate::reset::Reset;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::value::RawValue;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::{Job, JobId};
use turnstone_ojs::OjsError;
use turnstone_store::RunEvent;

/// A list has at most this many events, and fewer when they are long; the next request continues after the last.
const MOST: u32 = 1000;

/// The header of a list that is not the whole.
const HAS_MORE: HeaderName = HeaderName::from_static("x-has-more");
/// The header with the `since` of the next request.
const NEXT_SINCE: HeaderName = HeaderName::from_static("x-next-since");

/// Events of a request, or all events of a run (Agent Protocol, get events).
///
/// Without `since` a request returns the events since its last poll, by any client; a run returns all its events. A
/// stream replays the request, continues live, and ends with `request_completed`. At most 1000 events, or a megabyte of
/// them, are returned at once; then `X-Has-More` is true, and `X-Next-Since` is the `since` of the next request.
///
/// A stream also has frames named `delta` between the events. Each is a piece of the text that a model is writing
/// (`text_output_delta`, with `answer`, `offset` and `content`). They have no `id` and are not sent again: the whole
/// text is the `text_output` of the same `answer`. Agents whose answers are checked first have none.
#[utoipa::path(
    get, path = "/agents/{name}/getevents/{id}", tag = "agent protocol",
    security(("tenant" = ["viewer"])),
    params(
        ("name" = String, Path, description = "The agent's name."),
        ("id" = String, Path, description = "A request or a run."),
        ("since" = Option<i64>, Query, description = "Only events with a greater id.", minimum = 0),
        ("stream" = Option<bool>, Query, description = "Server-sent events instead of a list."),
        ("Last-Event-ID" = Option<String>, Header, description = "Where a stream resumes; `since` wins over it."),
    ),
    responses((status = 200, description = "The events, oldest first.", content(
        (Vec<serde_json::Value> = "application/json"),
        (String = "text/event-stream"),
    ))),
)]
pub(crate) async fn of_subject(
    State(app): State<Shared>,
    Segments(agent, id): Segments,
    who: Who,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    answer(app, &agent, &id, &who, &params, &headers).await
}

/// The same, with the id of the request as a parameter.
#[utoipa::path(
    get, path = "/agents/{name}/getevents", tag = "agent protocol",
    security(("tenant" = ["viewer"])),
    params(
        ("name" = String, Path, description = "The agent's name."),
        ("request_id" = Option<String>, Query, description = "The request."),
        ("run_id" = Option<String>, Query, description = "The run, without `request_id`."),
        ("since" = Option<i64>, Query, description = "Only events with a greater id.", minimum = 0),
        ("stream" = Option<bool>, Query, description = "Server-sent events instead of a list."),
    ),
    responses((status = 200, description = "The events, oldest first.", body = Vec<serde_json::Value>)),
)]
pub(crate) async fn of_parameter(
    State(app): State<Shared>,
    Segment(agent): Segment,
    who: Who,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    let id = params.text("request_id").or_else(|| params.text("run_id"));
    let id = id.ok_or_else(|| OjsError::invalid_request("request_id", "must name a request"))?.to_owned();
    answer(app, &agent, &id, &who, &params, &headers).await
}

/// The events of a run by the second path that the protocol defines for them (AP-A4).
#[utoipa::path(
    get, path = "/agents/{name}/events/{run_id}", tag = "agent protocol",
    security(("tenant" = ["viewer"])),
    params(
        ("name" = String, Path, description = "The agent's name."),
        ("run_id" = String, Path, description = "The run."),
        ("since" = Option<i64>, Query, description = "Only events with a greater id.", minimum = 0),
        ("stream" = Option<bool>, Query, description = "Server-sent events instead of a list."),
    ),
    responses((status = 200, description = "The events, oldest first.", body = Vec<serde_json::Value>)),
)]
pub(crate) async fn of_run(
    State(app): State<Shared>,
    Segments(agent, id): Segments,
    who: Who,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    answer(app, &agent, &id, &who, &params, &headers).await
}

async fn answer(
    app: Shared,
    agent: &str,
    id: &str,
    who: &Who,
    params: &Params,
    headers: &HeaderMap,
) -> Answer {
    let since = since(params)?;
    let subject = find::subject(&app, agent, id, who).await?;
    let streamed = params.flag("stream")?.unwrap_or(false);
    match (subject, streamed) {
        (Subject::Run(run), false) => list(&app, &run, None, since.unwrap_or(0)).await,
        (Subject::Configured(record), true) => {
            let since = since.map_or_else(|| stream::resumed(headers), |since| Ok(Some(since)))?;
            Ok(record.streamed(since.unwrap_or(0)))
        }
        (Subject::Configured(record), false) => {
            // Only a request is polled; a run has all its events each time.
            let since = since.or((record.run_id == id).then_some(0));
            let answer = reply::ok(&record.after(since.unwrap_or(record.seen)));
            if since.is_none() {
                configured::polled(&app, agent, &who.tenant, &record).await?;
            }
            Ok(answer)
        }
        (Subject::Request(job, run), false) => match since {
            Some(since) => list(&app, &run, Some(&job.id), since).await,
            None => poll(&app, &run, &job).await,
        },
        (Subject::Request(job, run), true) => {
            let since = since.map_or_else(|| stream::resumed(headers), |since| Ok(Some(since)))?;
            Ok(stream::answer(app, run, Some(job.id), since))
        }
        (Subject::Run(run), true) => {
            let since = since.map_or_else(|| stream::resumed(headers), |since| Ok(Some(since)))?;
            Ok(stream::answer(app, run, None, since))
        }
    }
}

fn since(params: &Params) -> Result<Option<i64>, Failure> {
    params.text("since").map(|_| params.number("since", 0, 0, i64::MAX)).transpose()
}

async fn list(app: &App, run: &Engagement, request: Option<&JobId>, since: i64) -> Answer {
    let newest = run_events::catch_up(app, run).await?.last;
    if since > newest {
        return Err(Reset::of_run(newest, since).into_error().into());
    }
    let page = app.api.store.runs.run_events(&run.id, since, request, MOST).await?;
    resume::note_displayed(app, &page.events).await?;
    shown(&page.events, page.more)
}

/// Returns the events that were not polled yet. Two clients that poll at the same time share them: each event goes to
/// one of them.
async fn poll(app: &App, run: &Engagement, job: &Job) -> Answer {
    run_events::catch_up(app, run).await?;
    let runs = &app.api.store.runs;
    loop {
        let seen = runs.run_requests(&run.id).await?.into_iter().find(|request| request.job == job.id);
        let Some(seen) = seen.map(|request| request.seen) else { return shown(&[], false) };
        let page = runs.run_events(&run.id, seen, Some(&job.id), MOST).await?;
        let Some(last) = page.events.last().map(|event| event.id) else { return shown(&[], false) };
        if runs.polled(&job.id, seen, last).await? {
            resume::note_displayed(app, &page.events).await?;
            return shown(&page.events, page.more);
        }
    }
}

/// Returns events as a list. When more are stored, the headers say so, and `since` of the next request.
fn shown(events: &[RunEvent], more: bool) -> Answer {
    let bodies: Result<Vec<&RawValue>, _> =
        events.iter().map(|event| serde_json::from_str::<&RawValue>(&event.body)).collect();
    match bodies {
        Ok(bodies) => {
            let mut response = reply::ok(&bodies);
            if let Some(last) = events.last().filter(|_| more) {
                response.headers_mut().insert(HAS_MORE, HeaderValue::from_static("true"));
                response.headers_mut().insert(NEXT_SINCE, last.id.into());
            }
            Ok(response)
        }
        Err(_) => Err(OjsError::internal("An event of this run cannot be read.").into()),
    }
}
