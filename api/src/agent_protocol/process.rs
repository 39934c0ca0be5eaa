//! `POST /agents/{name}/process` sends a request to an agent. `POST /agents/{name}/stream_request` does the same, and streams
//! its events in the response.
//!
//! A ChatRequest, and a request of one of the agent's operations, becomes a job (`begin`). A ConfigureRequest changes the
//! settings of a run, a CancelRequest cancels a job, and a ResumeWithInput answers an agent's question.

use super::begin::{Begun, begin};
use super::configured::ConfigureRecord;
use super::request_types::{AgentRequest, ProtocolRequest, Wish};
use super::{cancel, configure, find, resume, stream};
use crate::agents::input::check_json;
use crate::api::{App, Shared};
use crate::blocking;
use crate::caller::Who;
use crate::engagements::answering::UserAnswer;
use crate::reply::{self, Answer, Failure};
use crate::request::{JsonBytes, Params, RequestId, Segment, Tenant};
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::JobId;
use turnstone_domain::agent::Operation;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::question::Said;
use turnstone_ojs::OjsError;
use turnstone_store::Ring;

/// The longest time that a request with `wait` waits for its event.
const FIRST_EVENT_TIMEOUT: Duration = Duration::from_secs(5);
/// The polling interval of such a request, because the doorbell may lose a notification.
const POLL: Duration = Duration::from_millis(500);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const RUN_ID: HeaderName = HeaderName::from_static("x-run-id");

/// Sends a request to an agent (Agent Protocol, process).
///
/// Without `wait` the response is 202 with an empty body; `Location` is the address of its events, `X-Request-Id` and
/// `X-Run-Id` are its names. With `wait` a ChatRequest or a ResumeWithInput returns its RequestStarted, a
/// ConfigureRequest or a CancelRequest its RequestCompleted. The response is 202 after five seconds.
#[utoipa::path(
    post, path = "/agents/{name}/process", tag = "agent protocol",
    security(("tenant" = ["submitter"])),
    params(
        ("name" = String, Path, description = "The agent's name."),
        ("wait" = Option<bool>, Query, description = "Wait up to five seconds, and return an event of the request."),
        ("run_id" = Option<String>, Query, description = "The same as `run_id` in the body."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the run."),
    ),
    request_body = AgentRequest,
    responses(
        (status = 200, description = "An event.", body = serde_json::Value),
        (status = 202, description = "The request is accepted."),
        (status = 404, description = "There is no such agent, run or request."),
        (status = 409, description = "The request_id belongs to another request, or the state of the request does not permit this."),
        (status = 422, description = "The type of the request, or one of its members, is not valid for this agent."),
    ),
)]
pub(crate) async fn process(
    State(app): State<Shared>,
    Segment(agent): Segment,
    who: Who,
    params: Params,
    trace: RequestId,
    headers: HeaderMap,
    body: Result<JsonBytes, Failure>,
) -> Answer {
    check_json(&headers)?;
    let Who { tenant, caller } = who;
    let record = app.api.store.views.agent(&agent, tenant.name()).await?;
    let wait = params.flag("wait")?.unwrap_or(false);
    let operations = record.as_ref().map_or(&[][..], |record| &record.definition.operations);
    let requested = read(body?, &params, operations).await;
    // The runs of an agent that was deleted continue. Their requests can still be cancelled, and their questions answered.
    let continues =
        requested.as_ref().is_ok_and(|requested| matches!(requested.wish, Wish::Cancel | Wish::Resume(_)));
    if record.is_none() && !continues {
        return Err(OjsError::not_found("agent", &agent).into());
    }
    let requested = requested?.from((&caller, &tenant.principal), &headers)?;
    let about = &about(&app, &agent, &requested, &tenant).await?;
    match &requested.wish {
        Wish::Chat(_) | Wish::Operation(..) => {
            let begun = begin(&app, &agent, &requested, &tenant, &trace).await?;
            answer(&app, &agent, &begun, wait, false).await
        }
        Wish::Configure(args) => {
            let record = configure::configure(&app, &agent, &requested, args, &tenant).await?;
            Ok(configured(&record, &agent, wait))
        }
        Wish::Cancel => {
            let (job, run) = cancel::cancel(&app, &agent, about, &tenant).await?;
            let begun = Begun { job: job.id, request_id: about.to_owned(), run };
            answer(&app, &agent, &begun, wait, true).await
        }
        Wish::Resume(keys) => {
            let (call, by) = (requested.call(), requested.user());
            let principal = Arc::clone(&tenant.principal);
            let given = UserAnswer {
                said: Said::Values(keys.clone()),
                call,
                key: None,
                by,
                principal,
                message: None,
            };
            let begun = resume::resume(&app, &agent, about, &given, &tenant).await?;
            answer(&app, &agent, &begun, wait, false).await
        }
    }
}

/// Returns the id of the request that is cancelled or answered. A peer may name only requests that it sent itself.
async fn about(
    app: &App,
    agent: &str,
    requested: &ProtocolRequest,
    tenant: &Tenant,
) -> Result<String, Failure> {
    let id = requested.request_id.as_deref().unwrap_or_default();
    match (&requested.peer, &requested.wish) {
        (Some(peer), Wish::Cancel | Wish::Resume(_)) => find::own(app, agent, id, tenant, peer).await,
        _ => Ok(id.to_owned()),
    }
}

/// Sends a request to an agent and streams its events (Agent Protocol, stream_request).
#[utoipa::path(
    post, path = "/agents/{name}/stream_request", tag = "agent protocol",
    security(("tenant" = ["submitter"])),
    params(
        ("name" = String, Path, description = "The agent's name."),
        ("run_id" = Option<String>, Query, description = "The same as `run_id` in the body."),
        ("X-OJS-Tenant" = Option<String>, Header, description = "The tenant of the run."),
    ),
    request_body = AgentRequest,
    responses(
        (status = 200, description = "The events of the request, from its first.", body = String, content_type = "text/event-stream"),
        (status = 404, description = "There is no such agent or run."),
        (status = 409, description = "The request_id belongs to another request."),
        (status = 422, description = "Only a ChatRequest, or a request of an operation, can be streamed."),
    ),
)]
pub(crate) async fn stream_request(
    State(app): State<Shared>,
    Segment(agent): Segment,
    tenant: Tenant,
    params: Params,
    trace: RequestId,
    headers: HeaderMap,
    body: Result<JsonBytes, Failure>,
) -> Answer {
    check_json(&headers)?;
    let record = find::agent(&app, &agent, &tenant).await?;
    let requested = read(body?, &params, &record.definition.operations).await?;
    let (Wish::Chat(_) | Wish::Operation(..)) = &requested.wish else {
        let message = format!("A {} cannot be streamed; send it to process.", requested.wish.name());
        return Err(OjsError::validation("type", message).into());
    };
    let begun = begin(&app, &agent, &requested, &tenant, &trace).await?;
    let mut response = stream::answer(app, begun.run.clone(), Some(begun.job.clone()), None);
    add_names(&mut response, &agent, &begun.request_id, begun.run.id.as_str());
    Ok(response)
}

fn configured(record: &ConfigureRecord, agent: &str, wait: bool) -> Response {
    let mut response =
        if wait { reply::ok(record.completed()) } else { StatusCode::ACCEPTED.into_response() };
    add_names(&mut response, agent, &record.request_id, &record.run_id);
    response
}

/// Returns an event of the request if the client waits for it and it is published in time, else 202 without a body. With
/// `last` it is the last event of the request, otherwise the first.
async fn answer(app: &App, agent: &str, begun: &Begun, wait: bool, last: bool) -> Answer {
    let event = if wait { wait_for_event(app, &begun.run, &begun.job, last).await? } else { None };
    let mut response = match event {
        Some(event) => reply::ok(&event),
        None => StatusCode::ACCEPTED.into_response(),
    };
    add_names(&mut response, agent, &begun.request_id, begun.run.id.as_str());
    Ok(response)
}

/// Waits for the first or the last event of a request; `None` when it is not published within [`FIRST_EVENT_TIMEOUT`].
async fn wait_for_event(
    app: &App,
    run: &Engagement,
    job: &JobId,
    last: bool,
) -> Result<Option<Box<serde_json::value::RawValue>>, Failure> {
    let mut notifications = app.api.store.doorbell.listen();
    let timeout = tokio::time::sleep(FIRST_EVENT_TIMEOUT);
    tokio::pin!(timeout);
    loop {
        if let Some(event) = cancel::edge(app, run, job, last).await? {
            return Ok(Some(event));
        }
        let poll = tokio::time::sleep(POLL);
        tokio::pin!(poll);
        loop {
            tokio::select! {
                biased;
                () = app.api.shutdown.cancelled() => return Ok(None),
                () = &mut timeout => return Ok(None),
                () = &mut poll => break,
                ring = notifications.recv() => match ring {
                    Ok(Ring::Events(name)) if name != run.id.as_str() => {}
                    Ok(Ring::Events(_) | Ring::AllEvents)
                    | Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => break,
                    Ok(_) => {}
                    Err(tokio::sync::broadcast::error::RecvError::Closed) => return Ok(None),
                },
            }
        }
    }
}

/// Adds the headers with the address of the request's events, its id, and the id of its run.
fn add_names(response: &mut Response, agent: &str, request: &str, run: &str) {
    let address = format!("/agents/{agent}/getevents/{request}");
    let headers = [(LOCATION, address.as_str()), (REQUEST_ID, request), (RUN_ID, run)];
    for (name, value) in headers {
        response.headers_mut().extend(HeaderValue::from_str(value).ok().map(|value| (name, value)));
    }
}

/// Reads a request on a thread that may block, because its input may be checked against a schema.
async fn read(
    JsonBytes(bytes): JsonBytes,
    params: &Params,
    operations: &[Operation],
) -> Result<ProtocolRequest, Failure> {
    let run = params.text("run_id");
    if operations.iter().all(|operation| operation.input_schema.is_none()) {
        return ProtocolRequest::read(&bytes, run, operations);
    }
    let (run, operations) = (run.map(str::to_owned), operations.to_vec());
    blocking::run(move || ProtocolRequest::read(&bytes, run.as_deref(), &operations)).await?
}
