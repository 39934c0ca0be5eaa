//! `SendMessage` and `SendStreamingMessage`: an input that begins a task, continues a context, or answers a task that asks.

use super::message::{Message, OUTPUT_MODES};
use super::method::{Sender, find, history};
use super::rpc::Refusal;
use super::task::asks;
use crate::agents::engage::{JOB_TYPE, named_id, place};
use crate::api::Shared;
use crate::engagements::answer::{AnswerTo, Given, answer};
use crate::engagements::further::{Further, say};
use crate::engagements::waiting::below;
use crate::ojs::jobs::accept::accept;
use crate::reply::Failure;
use crate::request::Tenant;
use serde_json::{Map, Value, json};
use turnstone_domain::event::Event;
use turnstone_domain::terms::Continues;
use turnstone_domain::{EngagementId, EventName, Job, JobId, RawJson, RawObject};
use turnstone_store::EventFilter;

/// Events that are looked through at once.
const EVENTS: u32 = 200;

/// What is to be sent, and how the answer is wanted.
pub(super) struct Sending {
    message: Message,
    /// `params.metadata`, kept with the job.
    metadata: Option<Value>,
    /// Whether the answer is wanted before the task rests.
    pub(super) at_once: bool,
    /// How much of the conversation is wanted.
    pub(super) history: Option<u64>,
}

impl Sending {
    /// Reads the parameters.
    pub(super) fn read(params: &Map<String, Value>) -> Result<Self, Refusal> {
        let nothing = Map::new();
        let configuration = match params.get("configuration") {
            None | Some(Value::Null) => &nothing,
            Some(sent) => {
                sent.as_object().ok_or_else(|| Refusal::parameter("configuration", "must be an object"))?
            }
        };
        if configuration.get("taskPushNotificationConfig").is_some_and(|config| !config.is_null()) {
            return Err(Refusal::no_push());
        }
        check_modes(configuration.get("acceptedOutputModes"))?;
        let metadata = params.get("metadata").filter(|metadata| !metadata.is_null());
        if metadata.is_some_and(|metadata| !metadata.is_object()) {
            return Err(Refusal::parameter("metadata", "must be an object"));
        }
        Ok(Self {
            message: Message::read(params.get("message"))?,
            metadata: metadata.cloned(),
            at_once: configuration.get("returnImmediately").and_then(Value::as_bool).unwrap_or(false),
            history: history(configuration)?,
        })
    }
}

fn check_modes(accepted: Option<&Value>) -> Result<(), Refusal> {
    let Some(accepted) = accepted.and_then(Value::as_array).filter(|modes| !modes.is_empty()) else {
        return Ok(());
    };
    let fits = |mode: &str| mode == "*/*" || mode == "text" || OUTPUT_MODES.contains(&mode);
    if accepted.iter().filter_map(Value::as_str).any(fits) {
        return Ok(());
    }
    Err(Refusal::content_type(format!("Agents answer with {}.", OUTPUT_MODES.join(" or "))))
}

/// Does what the message asks, and returns the task.
pub(super) async fn send(app: &Shared, from: &Sender<'_>, sent: &Sending) -> Result<Job, Refusal> {
    match &sent.message.task {
        Some(task) => {
            let job = find(app, from, task).await?;
            let context = job.agent.as_ref().map(|side| side.engagement_id.as_str());
            if sent.message.context.as_deref().is_some_and(|named| Some(named) != context) {
                return Err(Refusal::parameter("message.contextId", "is not the context of the task"));
            }
            reply_to(app, job, &from.who.tenant, sent).await
        }
        None => begin(app, from, sent).await,
    }
}

/// Begins a task: in a context of its own, or after what is said in the one that the message names.
async fn begin(app: &Shared, from: &Sender<'_>, sent: &Sending) -> Result<Job, Refusal> {
    let (name, message, tenant) = (from.agent(), &sent.message, &from.who.tenant);
    let context = message.context.as_deref();
    let parts = ["a2a", name, tenant.name().unwrap_or_default(), context.unwrap_or_default(), &message.id];
    let id = JobId(named_id(&parts));
    let args = RawJson::of(&json!(message.args));
    if app.api.store.views.job(&id).await?.is_none() {
        let mut meta = RawObject::new();
        let peer = from.who.caller.peer();
        meta.insert("a2a", json!({"message_id": message.id, "metadata": sent.metadata, "peer": peer}));
        let began = match context {
            Some(_) if peer.is_some() => {
                let why = "is no other server's to continue; leave it out";
                return Err(Refusal::parameter("message.contextId", why));
            }
            Some(context) => {
                check_context(app, name, tenant, context).await?;
                let continues = Continues::Always;
                let further = Further {
                    job: Some(id.clone()),
                    args: args.clone(),
                    metadata: meta,
                    settings: RawObject::new(),
                    continues,
                };
                say(app, context, tenant, further).await.map(|_| ())
            }
            None => engage(app, from, &id, args.clone(), meta).await,
        };
        match began {
            // Somebody sent the same at the same time.
            Err(Failure(error)) if error.code == "duplicate" => {}
            began => began?,
        }
    }
    // The same message again: the task that it began goes on.
    let job = find(app, from, id.as_str()).await?;
    if job.envelope.args != args {
        return Err(Refusal::parameter("message.messageId", "was used for another message"));
    }
    Ok(job)
}

async fn engage(
    app: &Shared,
    from: &Sender<'_>,
    id: &JobId,
    args: RawJson,
    mut meta: RawObject,
) -> Result<(), Failure> {
    meta.insert("agent", from.agent());
    if let Some(user) = from.errand.as_ref().and_then(|errand| errand.user.as_ref()) {
        meta.insert("user", json!({"id": user.id, "email": user.email}));
    }
    let mut fields = RawObject::new();
    fields.insert("id", id.as_str());
    fields.insert("type", JOB_TYPE);
    fields.insert("args", args);
    fields.insert("meta", meta);
    if let Some(limit) = from.errand.as_ref().and_then(|errand| errand.token_budget) {
        fields.insert("ext_agent_token_budget", limit);
    }
    let mut job = accept(app, fields, from.tenant(), app.api.clock.now()).await?;
    if let Some(errand) = &from.errand {
        place(&mut job, errand)?;
    }
    app.api.store.intake.push(vec![job]).await?;
    Ok(())
}

/// Whether this message answered a question of the task before: the same message again has no second effect.
async fn answered_by(app: &Shared, job: &Job, message: &str) -> Result<bool, Refusal> {
    let jobs = below(app, &job.id, false).await?.into_iter().map(|seat| seat.job);
    for job in std::iter::once(job.id.clone()).chain(jobs) {
        let (filter, mut since) = (EventFilter::Job(job), 0);
        loop {
            let page = app.api.store.views.events_after(&filter, since, EVENTS).await?;
            let Some(last) = page.last() else { break };
            since = last.seq;
            let is_one =
                |event: &Event| event.name == EventName::InputReceived && event.data["message_id"] == message;
            if page.iter().any(is_one) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// What a message said beside its input, and who sent it; null for other jobs.
pub(super) fn own(job: &Job) -> Value {
    job.envelope.meta.get("a2a").and_then(|sent| sent.parse::<Value>().ok()).unwrap_or_default()
}

/// Contexts are made here: a client may continue one, and not name one.
async fn check_context(app: &Shared, agent: &str, tenant: &Tenant, id: &str) -> Result<(), Refusal> {
    let found = app.api.store.views.engagement_of(&EngagementId::from(id), tenant.name()).await?;
    match found {
        Some((engagement, _, _)) if engagement.agent == agent => Ok(()),
        _ => Err(Refusal::parameter(
            "message.contextId",
            "is no context of this agent; leave it out to begin one",
        )),
    }
}

/// Answers a task that asks.
async fn reply_to(app: &Shared, job: Job, tenant: &Tenant, sent: &Sending) -> Result<Job, Refusal> {
    let (id, context) = (&job.id, super::task::context(&job));
    let question = asks(app, &job).await?;
    // After the question is read: a message that answered the one before is found among those that answered.
    if answered_by(app, &job, &sent.message.id).await? {
        return Ok(job);
    }
    if job.state.is_terminal() {
        let next = format!("send the message with the contextId {context}, without a taskId, to go on");
        return Err(Refusal::unsupported(format!("Task {id} has ended; {next}.")));
    }
    let Some((seat, question)) = question else {
        return Err(Refusal::unsupported(format!(
            "Task {id} asks nothing; send the message with the contextId {context}, without a taskId, and it follows."
        )));
    };
    let values = match (sent.message.data(), question.question.only_key()) {
        (Some(data), _) => data.clone(),
        (None, Some(key)) => Map::from_iter([(key.to_owned(), sent.message.as_text().into())]),
        (None, None) => {
            let why =
                "must have one part `data`, with a member for each of the `request_keys` that were asked for";
            return Err(Refusal::parameter("message.parts", why));
        }
    };
    let message = Some(sent.message.id.clone());
    let given = Given { values, call: Some(question.call_id), key: None, by: None, message };
    answer(app, AnswerTo::Job(&seat), tenant, given).await?;
    app.api.store.views.job(id).await?.ok_or_else(|| Refusal::no_task(id.as_str()))
}
