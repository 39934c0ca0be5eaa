//! Begins a request: a job that carries its input into a new run, or into the one that it continues.

use super::request_types::{ProtocolRequest, Wish};
use super::{configure, configured, find, name, request_id};
use crate::agents::engage::place;
use crate::api::App;
use crate::engagements::further::{Further, say};
use crate::ojs::jobs::accept::accept;
use crate::reply::Failure;
use crate::request::{RequestId, Tenant};
use serde_json::{Value, json};
use turnstone_domain::engagement::Engagement;
use turnstone_domain::terms::Continues;
use turnstone_domain::{EngagementId, Job, JobId, RawJson, RawObject};
use turnstone_ojs::OjsError;

/// The type of the jobs that carry requests.
const JOB_TYPE: &str = "agent.engagement";
const TOKEN_BUDGET: &str = "ext_agent_token_budget";

/// A request that has been accepted.
pub(super) struct Begun {
    /// Its job.
    pub job: JobId,
    /// The client's id of it.
    pub request_id: String,
    /// Its run.
    pub run: Engagement,
}

/// Accepts a request with this text. A repeated request returns the first one (AP-A5).
///
/// # Errors
/// 404 for an unknown run, 409 for a name that was given to another request, and the errors of enqueueing a job.
pub(super) async fn begin(
    app: &App,
    agent: &str,
    requested: &ProtocolRequest,
    tenant: &Tenant,
    trace: &RequestId,
) -> Result<Begun, Failure> {
    let names = app.names().await?;
    let name = requested.request_id.as_deref().map(|id| request_id::of_name(agent, tenant.name(), id));
    let named = name.as_ref().map(|name| names.id(name));
    if let Some(name) = &name
        && let Some(job) = names.find(&app.api.store.views, name, tenant.name()).await?
    {
        return again(app, agent, requested, job, tenant).await;
    }
    if let Some(id) = &requested.request_id
        && (find::run(app, agent, id, tenant).await.is_ok()
            || configured::find(app, agent, id, tenant).await?.is_some())
    {
        return Err(OjsError::conflict(format!(
            "`{id}` is a run of this agent, or a request that configured it; name the request otherwise."
        ))
        .into());
    }
    let run = match &requested.run_id {
        Some(id) => Some(find::run(app, agent, id, tenant).await?),
        None => None,
    };
    let id = match &run {
        Some(run) => further(app, agent, requested, tenant, (run, trace, named.clone())).await,
        None => new(app, agent, requested, tenant, (trace, named.clone())).await,
    };
    let (id, run) = match id {
        Ok(begun) => begun,
        // The same request at the same time.
        Err(Failure(error)) if error.code == "duplicate" => {
            let before = match &name {
                Some(name) => names.find(&app.api.store.views, name, tenant.name()).await?,
                None => None,
            };
            return again(app, agent, requested, before.ok_or(Failure(error))?, tenant).await;
        }
        Err(failure) => return Err(failure),
    };
    let request_id = requested.request_id.clone().unwrap_or_else(|| id.to_string());
    Ok(Begun { job: id, request_id, run: find::run(app, agent, run.as_str(), tenant).await? })
}

/// Begins a run with it.
async fn new(
    app: &App,
    agent: &str,
    requested: &ProtocolRequest,
    tenant: &Tenant,
    (trace, named): (&RequestId, Option<JobId>),
) -> Result<(JobId, EngagementId), Failure> {
    let mut fields = RawObject::new();
    fields.insert("type", JOB_TYPE);
    fields.insert("args", args(requested));
    fields.insert("meta", meta(agent, requested));
    configure::apply(app, agent, tenant, None, &mut fields).await?;
    if let Wish::Operation(operation, _) = &requested.wish
        && let Some(schema) = &operation.output_schema
    {
        fields.insert("ext_agent_output_schema", schema.clone());
    }
    if let Some(id) = &named {
        fields.insert("id", id.as_str());
    }
    if let Some(limit) = requested.peer_request.as_ref().and_then(|peer_request| peer_request.token_budget) {
        let own = fields.given(TOKEN_BUDGET).and_then(|own| own.parse::<i64>().ok());
        fields.insert(TOKEN_BUDGET, own.map_or(limit, |own| own.min(limit)));
    }
    trace.keep(&mut fields);
    let mut job = accept(app, fields, tenant, app.api.clock.now()).await?;
    if let Some(peer_request) = &requested.peer_request {
        place(&mut job, peer_request)?;
    }
    let id = job.id.clone();
    let run = job.engagement.as_ref().map(|new| new.id.clone());
    app.api.store.intake.push(vec![job]).await?;
    Ok((id, run.ok_or_else(|| OjsError::internal("The job has no engagement."))?))
}

/// Continues a run with it: the request is processed when the requests before it have ended.
async fn further(
    app: &App,
    agent: &str,
    requested: &ProtocolRequest,
    tenant: &Tenant,
    (run, trace, named): (&Engagement, &RequestId, Option<JobId>),
) -> Result<(JobId, EngagementId), Failure> {
    if let Wish::Operation(operation, _) = &requested.wish {
        let message = format!("`{}` begins a run of its own; leave run_id out.", operation.name);
        return Err(OjsError::validation("run_id", message).into());
    }
    let mut settings = RawObject::new();
    configure::apply(app, agent, tenant, Some(run), &mut settings).await?;
    let mut sent = RawObject::new();
    sent.insert("meta", meta(agent, requested));
    trace.keep(&mut sent);
    let metadata = sent.remove("meta").and_then(|meta| meta.parse().ok()).unwrap_or_default();
    let said = Further {
        job: named,
        args: RawJson::of(&args(requested)),
        metadata,
        settings,
        continues: Continues::Always,
    };
    let taken = say(app, run.id.as_str(), tenant, said).await?;
    Ok((taken.job, taken.engagement))
}

/// Returns the request that was accepted under this name, when it is the same.
async fn again(
    app: &App,
    agent: &str,
    requested: &ProtocolRequest,
    job: Job,
    tenant: &Tenant,
) -> Result<Begun, Failure> {
    let request_id = name::of(app.names().await?, &job);
    let sent = name::kept(&job);
    if sent["digest"] != requested.digest.as_str() || sent["peer"].as_str() != requested.peer.as_deref() {
        let message =
            format!("Request `{request_id}` was sent before with another body, or by another client.");
        return Err(OjsError::conflict(message).with("request_id", request_id).into());
    }
    let run = job.agent.map(|agent| agent.engagement_id);
    let run = run.ok_or_else(|| OjsError::internal("The job has no engagement."))?;
    Ok(Begun { job: job.id, request_id, run: find::run(app, agent, run.as_str(), tenant).await? })
}

/// Returns the `args` of its job: the input of the agent.
fn args(requested: &ProtocolRequest) -> Value {
    match &requested.wish {
        Wish::Chat(text) => json!([text]),
        // As a text: an object could be taken for a message of another author.
        Wish::Operation(_, input) => json!([input.to_string()]),
        _ => json!([]),
    }
}

/// Returns the `meta` of its job. `request_metadata.user_id`, or `user` with an id and an e-mail address, names the
/// user of the request, as `metadata.user` does where engagements are begun (AP-A15). Other members are kept and have no
/// effect.
fn meta(agent: &str, requested: &ProtocolRequest) -> RawObject {
    let mut own = requested.kept.clone();
    own.insert("request_id".to_owned(), requested.request_id.as_deref().into());
    own.insert("digest".to_owned(), requested.digest.as_str().into());
    if let Some(peer) = &requested.peer {
        own.insert("peer".to_owned(), peer.as_str().into());
    }
    let metadata = requested.kept.get("request_metadata").cloned().unwrap_or_default();
    let by_id = || Some(json!({"id": metadata.get("user_id").filter(|id| !id.is_null())?}));
    let said = metadata.get("user").filter(|user| !user.is_null()).cloned().or_else(by_id);
    let user = match &requested.peer_request {
        Some(peer_request) => {
            peer_request.user.as_ref().map(|user| json!({"id": user.id, "email": user.email}))
        }
        // A value that is no user is refused where jobs are accepted.
        None => said,
    };
    let mut meta = RawObject::new();
    meta.insert("agent", agent);
    if let Some(user) = user {
        meta.insert("user", user);
    }
    meta.insert(name::MEMBER, Value::Object(own));
    meta
}
