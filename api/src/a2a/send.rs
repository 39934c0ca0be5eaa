//! `SendMessage` and `SendStreamingMessage`: an input that begins a task, continues a context, or answers a task that
//! waits for its client.

use super::message::{Message, OUTPUT_MODES};
use super::method::{Sender, find, history};
use super::rpc::RpcRefusal;
use crate::agents::engage::{JOB_TYPE, named, place};
use crate::api::Shared;
use crate::engagements::answering::{SEVERAL, UserAnswer, give_if_asked, key_of};
use crate::engagements::further::{Further, say};
use crate::engagements::waiting::Among;
use crate::ojs::jobs::accept::accept;
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use turnstone_domain::question::Said;
use turnstone_domain::terms::Continues;
use turnstone_domain::{EngagementId, Job, JobId, RawJson, RawObject};
use turnstone_ojs::OjsError;

/// A message to send, and the form of the response.
pub(super) struct Sending {
    message: Message,
    /// `params.metadata`, kept with the job.
    metadata: Option<Value>,
    /// True if the response is returned at once, and not after the task has ended or waits for its client.
    pub(super) at_once: bool,
    /// The number of earlier messages that the response contains.
    pub(super) history: Option<u64>,
}

impl Sending {
    /// Reads the parameters of a request.
    ///
    /// # Errors
    /// The refusal that names the parameter.
    pub(super) fn read(params: &Map<String, Value>) -> Result<Self, RpcRefusal> {
        let nothing = Map::new();
        let configuration = match params.get("configuration") {
            None | Some(Value::Null) => &nothing,
            Some(sent) => {
                sent.as_object().ok_or_else(|| RpcRefusal::parameter("configuration", "must be an object"))?
            }
        };
        if configuration.get("taskPushNotificationConfig").is_some_and(|config| !config.is_null()) {
            return Err(RpcRefusal::no_push());
        }
        check_modes(configuration.get("acceptedOutputModes"))?;
        let metadata = params.get("metadata").filter(|metadata| !metadata.is_null());
        if metadata.is_some_and(|metadata| !metadata.is_object()) {
            return Err(RpcRefusal::parameter("metadata", "must be an object"));
        }
        Ok(Self {
            message: Message::read(params.get("message"))?,
            metadata: metadata.cloned(),
            at_once: configuration.get("returnImmediately").and_then(Value::as_bool).unwrap_or(false),
            history: history(configuration)?,
        })
    }
}

fn check_modes(accepted: Option<&Value>) -> Result<(), RpcRefusal> {
    let Some(accepted) = accepted.and_then(Value::as_array).filter(|modes| !modes.is_empty()) else {
        return Ok(());
    };
    let fits = |mode: &str| mode == "*/*" || mode == "text" || OUTPUT_MODES.contains(&mode);
    if accepted.iter().filter_map(Value::as_str).any(fits) {
        return Ok(());
    }
    Err(RpcRefusal::content_type(format!("Agents answer with {}.", OUTPUT_MODES.join(" or "))))
}

/// Sends the message: to the task that it names, or to begin one. Returns the task.
pub(super) async fn send(app: &Shared, from: &Sender<'_>, sent: &Sending) -> Result<Job, RpcRefusal> {
    match &sent.message.task {
        Some(task) => {
            let job = find(app, from, task).await?;
            let context = job.agent.as_ref().map(|side| side.engagement_id.as_str());
            if sent.message.context.as_deref().is_some_and(|named| Some(named) != context) {
                return Err(RpcRefusal::parameter("message.contextId", "is not the context of the task"));
            }
            reply_to(app, job, &from.who.tenant, sent).await
        }
        None => begin(app, from, sent).await,
    }
}

/// Begins a task: in a new context, or as a further input of the message's context. A repeated message returns the task
/// that it began.
async fn begin(app: &Shared, from: &Sender<'_>, sent: &Sending) -> Result<Job, RpcRefusal> {
    let (message, tenant) = (&sent.message, from.tenant());
    let context = message.context.as_deref().unwrap_or_default();
    let name = named(&["a2a", from.agent, tenant.unwrap_or_default(), context, &message.id]);
    let names = app.names().await?;
    let args = RawJson::of(&json!(message.args));
    let id = match names.find(&app.api.store.views, &name, tenant).await? {
        Some(before) => before.id,
        None if !from.registered => {
            let why = format!("Agent `{}` was deleted: its tasks continue, and none begins.", from.agent);
            return Err(RpcRefusal::unsupported(why));
        }
        None => {
            let id = names.id(&name);
            match enqueue(app, from, sent, (&id, &args)).await {
                // A concurrent request with the same message was recorded first.
                Err(Failure(error)) if error.code == "duplicate" => {}
                begun => begun?,
            }
            id
        }
    };
    let job = find(app, from, id.as_str()).await?;
    if job.envelope.args != args {
        return Err(RpcRefusal::parameter("message.messageId", "was used for another message"));
    }
    Ok(job)
}

/// Enqueues the job of a message: as a further input of its context, or with a new engagement.
async fn enqueue(
    app: &Shared,
    from: &Sender<'_>,
    sent: &Sending,
    (id, args): (&JobId, &RawJson),
) -> Result<(), Failure> {
    let peer = from.who.caller.peer();
    let mut meta = RawObject::new();
    meta.insert("a2a", json!({"message_id": sent.message.id, "metadata": sent.metadata, "peer": peer}));
    let Some(context) = &sent.message.context else { return engage(app, from, id, args, meta).await };
    if peer.is_some() {
        let why = "cannot be continued by another server; leave it out";
        return Err(OjsError::invalid_request("message.contextId", why).into());
    }
    check_context(app, from, context).await?;
    let mut fields = RawObject::new();
    fields.insert("meta", meta);
    from.trace.keep(&mut fields);
    let further = Further {
        job: Some(id.clone()),
        args: args.clone(),
        metadata: fields.remove("meta").and_then(|meta| meta.parse().ok()).unwrap_or_default(),
        settings: RawObject::new(),
        continues: Continues::Always,
    };
    say(app, context, &from.who.tenant, further).await.map(|_| ())
}

/// Begins an engagement with a message as its input.
async fn engage(
    app: &Shared,
    from: &Sender<'_>,
    id: &JobId,
    args: &RawJson,
    mut meta: RawObject,
) -> Result<(), Failure> {
    meta.insert("agent", from.agent);
    if let Some(user) = from.peer_request.as_ref().and_then(|peer_request| peer_request.user.as_ref()) {
        meta.insert("user", json!({"id": user.id, "email": user.email}));
    }
    let mut fields = RawObject::new();
    fields.insert("id", id.as_str());
    fields.insert("type", JOB_TYPE);
    fields.insert("args", args.clone());
    fields.insert("meta", meta);
    if let Some(limit) = from.peer_request.as_ref().and_then(|peer_request| peer_request.token_budget) {
        fields.insert("ext_agent_token_budget", limit);
    }
    from.trace.keep(&mut fields);
    let mut job = accept(app, fields, &from.who.tenant, app.api.clock.now()).await?;
    if let Some(peer_request) = &from.peer_request {
        place(&mut job, peer_request)?;
    }
    app.api.store.intake.push(vec![job]).await?;
    Ok(())
}

/// Returns the members that A2A keeps in the job's `meta`: the id of the message, its metadata and its sender. Null for jobs
/// that did not come through A2A.
pub(super) fn own(job: &Job) -> Value {
    job.envelope.meta.get("a2a").and_then(|sent| sent.parse::<Value>().ok()).unwrap_or_default()
}

/// Checks that a context exists and belongs to this agent and tenant. The server chooses the ids of contexts, so a client
/// cannot begin one with an id of its own.
async fn check_context(app: &Shared, from: &Sender<'_>, id: &str) -> Result<(), Failure> {
    let found = app.api.store.views.engagement_of(&EngagementId::from(id), from.tenant()).await?;
    match found {
        Some((engagement, _, _)) if engagement.agent == from.agent => Ok(()),
        _ => {
            let why = "is not the id of a context of this agent; leave it out to begin one";
            Err(OjsError::invalid_request("message.contextId", why).into())
        }
    }
}

/// Answers a task that waits for its client. A repeated message has no second effect, even when another question is
/// open by then.
async fn reply_to(app: &Shared, job: Job, tenant: &Tenant, sent: &Sending) -> Result<Job, RpcRefusal> {
    let (id, context, message) = (&job.id, super::task::context(&job), &sent.message);
    let found = app.api.store.views.engagement(&EngagementId::from(context)).await?;
    let Some((engagement, _, _)) = found else { return Err(RpcRefusal::no_task(id.shown())) };
    let data = message.data().cloned().map(Said::Values);
    let given = UserAnswer {
        said: data.unwrap_or_else(|| Said::Text(message.as_text())),
        call: None,
        key: Some(key_of("A2A message", &message.id)),
        by: None,
        principal: Arc::clone(&tenant.principal),
        message: Some(message.id.clone()),
    };
    match give_if_asked(app, (&engagement, &job), tenant, &given, Among::Delegates).await {
        Ok(Some(_)) => app.api.store.views.job(id).await?.ok_or_else(|| RpcRefusal::no_task(id.shown())),
        Ok(None) if job.state.is_terminal() => {
            let next =
                format!("send the message with the contextId {context}, without a taskId, to continue");
            Err(RpcRefusal::unsupported(format!("Task {id} has ended; {next}.")))
        }
        Ok(None) => Err(RpcRefusal::unsupported(format!(
            "Task {id} waits for no answer; send the message with the contextId {context}, without a taskId, and it is processed \
             after the task."
        ))),
        Err(Failure(error)) if error.details.contains_key(SEVERAL) => {
            let why =
                "must have one part `data`, with a member for each of the `request_keys` that were asked for";
            Err(RpcRefusal::parameter("message.parts", why))
        }
        Err(failure) => Err(failure.into()),
    }
}
