//! The methods and their dispatch.

use super::card::origin;
use super::rpc::{self, A2aMethod, RpcCall, RpcRefusal};
use super::{list, send, task, watch};
use crate::api::Shared;
use crate::caller::{PeerRequest, Who};
use crate::request::RequestId;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize as _;
use serde::de::{IntoDeserializer as _, value};
use serde_json::{Map, Value};
use turnstone_domain::{Job, JobId};
use turnstone_store::CancelOutcome;

const VERSION: &str = "a2a-version";

/// The caller and the agent.
pub(super) struct Sender<'a> {
    /// The agent's name.
    pub(super) agent: &'a str,
    /// True if it is registered. Tasks of an agent that was deleted continue as they began.
    pub(super) registered: bool,
    pub(super) who: &'a Who,
    /// The client's id of the HTTP request, and its trace.
    pub(super) trace: &'a RequestId,
    /// The context that another server sends with its request.
    pub(super) peer_request: Option<PeerRequest>,
}

impl Sender<'_> {
    /// Returns the tenant's name.
    pub(super) fn tenant(&self) -> Option<&str> {
        self.who.tenant.name()
    }
}

pub(super) async fn answer(app: &Shared, from: &Sender<'_>, headers: &HeaderMap, body: &[u8]) -> Response {
    let call = match RpcCall::read(body) {
        Ok(call) => call,
        Err((id, refusal)) => return rpc::answer(&id, Err(refusal)),
    };
    let origin = origin(app, headers);
    match reach(app, from, headers, &call).await {
        Ok(Outcome::Answer(result)) => rpc::answer(&call.id, Ok(result)),
        Ok(Outcome::Stream(watched)) => watch::stream(app.clone(), origin, call.id, *watched).await,
        Err(refusal) => rpc::answer(&call.id, Err(refusal)),
    }
}

/// The result of a call.
enum Outcome {
    Answer(Value),
    Stream(Box<Job>),
}

async fn reach(
    app: &Shared,
    from: &Sender<'_>,
    headers: &HeaderMap,
    call: &RpcCall,
) -> Result<Outcome, RpcRefusal> {
    check_version(headers)?;
    let origin = &origin(app, headers);
    let params = &call.params;
    let id = || {
        params.get("id").and_then(Value::as_str).ok_or_else(|| RpcRefusal::parameter("id", "must be a text"))
    };
    let method = A2aMethod::deserialize(call.method.as_str().into_deserializer());
    let method = method.map_err(|_: value::Error| RpcRefusal::no_method(&call.method))?;
    match method {
        A2aMethod::SendMessage => {
            let sent = send::Sending::read(params)?;
            let job = send::send(app, from, &sent).await?;
            let job = if sent.at_once { job } else { watch::until_it_rests(app, job).await? };
            Ok(Outcome::Answer(
                serde_json::json!({"task": task::shown(app, origin, &job, sent.history).await?}),
            ))
        }
        A2aMethod::SendStreamingMessage => {
            let sent = send::Sending::read(params)?;
            Ok(Outcome::Stream(Box::new(send::send(app, from, &sent).await?)))
        }
        A2aMethod::GetTask => {
            let job = find(app, from, id()?).await?;
            let mut shown = task::shown(app, origin, &job, history(params)?).await?;
            if let (Some(_), Some(side)) = (from.who.caller.peer(), &job.agent) {
                // The usage of a call by another server's agent is booked there.
                let used = app.api.store.views.budget(&side.engagement_id).await?.settled;
                shown["metadata"] = serde_json::json!({"tokensUsed": used});
            }
            Ok(Outcome::Answer(shown))
        }
        A2aMethod::ListTasks => list::tasks(app, from, origin, params).await.map(Outcome::Answer),
        A2aMethod::CancelTask => cancel(app, from, origin, id()?).await.map(Outcome::Answer),
        A2aMethod::SubscribeToTask => {
            let job = find(app, from, id()?).await?;
            if job.state.is_terminal() {
                return Err(RpcRefusal::unsupported(format!(
                    "Task {} has ended; ask for it with GetTask.",
                    job.id
                )));
            }
            Ok(Outcome::Stream(Box::new(job)))
        }
        A2aMethod::CreateTaskPushNotificationConfig
        | A2aMethod::GetTaskPushNotificationConfig
        | A2aMethod::ListTaskPushNotificationConfigs
        | A2aMethod::DeleteTaskPushNotificationConfig => Err(RpcRefusal::no_push()),
        A2aMethod::GetExtendedAgentCard => Err(RpcRefusal::no_extended_card()),
    }
}

/// A client that names no version uses 0.3 (A2A 1.0 §3.6).
fn check_version(headers: &HeaderMap) -> Result<(), RpcRefusal> {
    let sent = headers.get(VERSION).and_then(|value| value.to_str().ok()).map_or("", str::trim);
    let spoken = if sent.is_empty() { "0.3" } else { sent };
    match spoken.split('.').next() {
        Some("1") => Ok(()),
        _ => Err(RpcRefusal::version(&spoken.chars().take(20).collect::<String>())),
    }
}

/// Returns the number of messages to include; `None` is all.
pub(super) fn history(params: &Map<String, Value>) -> Result<Option<u64>, RpcRefusal> {
    match params.get("historyLength") {
        None | Some(Value::Null) => Ok(None),
        Some(length) => {
            let length = length.as_u64();
            length
                .map(Some)
                .ok_or_else(|| RpcRefusal::parameter("historyLength", "must be a whole number of at least 0"))
        }
    }
}

/// Returns the task of this agent, if the caller may see it. Another server sees the tasks that it began.
pub(super) async fn find(app: &Shared, from: &Sender<'_>, id: &str) -> Result<Job, RpcRefusal> {
    let views = &app.api.store.views;
    let job = views.job_of(&JobId::from(id), from.tenant()).await?;
    let job = job.ok_or_else(|| RpcRefusal::no_task(id))?;
    let Some(side) = &job.agent else { return Err(RpcRefusal::no_task(id)) };
    if from.who.caller.peer().is_some_and(|peer| send::own(&job)["peer"] != peer) {
        return Err(RpcRefusal::no_task(id));
    }
    match views.engagement(&side.engagement_id).await? {
        Some((engagement, _, _)) if engagement.agent == from.agent => Ok(job),
        _ => Err(RpcRefusal::no_task(id)),
    }
}

async fn cancel(app: &Shared, from: &Sender<'_>, origin: &str, id: &str) -> Result<Value, RpcRefusal> {
    let job = find(app, from, id).await?;
    match app.api.store.intake.cancel_of(&job.id, from.tenant(), app.api.clock.now()).await? {
        CancelOutcome::Cancelled { .. } => {
            let job = find(app, from, id).await?;
            task::shown(app, origin, &job, None).await
        }
        CancelOutcome::AlreadyEnded(state) => Err(RpcRefusal::not_cancelable(format!(
            "Task {id} cannot be canceled: it is {} already.",
            state.as_str()
        ))),
        CancelOutcome::NotFound => Err(RpcRefusal::no_task(id)),
    }
}
