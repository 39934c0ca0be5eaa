//! Begins a request: a job that carries its input into a new run, or into the one that it continues.

use super::asked::Asked;
use super::{configure, find, name, request_id};
use crate::api::App;
use crate::ojs::jobs::accept::accept;
use crate::reply::Failure;
use crate::request::{RequestId, Tenant};
use serde_json::{Value, json};
use turnstone_domain::engagement::Engagement;
use turnstone_domain::{JobId, RawObject};
use turnstone_ojs::OjsError;
use turnstone_store::StoreError;

/// The type of the jobs that carry requests.
const JOB_TYPE: &str = "agent.engagement";

/// A request that has been accepted.
pub(super) struct Begun {
    /// Its job.
    pub job: JobId,
    /// What the client calls it.
    pub request_id: String,
    /// Its run.
    pub run: Engagement,
}

/// Accepts a request with this text. One that was accepted before is found again (AP-A5).
///
/// # Errors
/// 404 for an unknown run, 409 for a name that was given to another request, and what the job is refused for.
pub(super) async fn begin(
    app: &App,
    agent: &str,
    asked: &Asked,
    input: &str,
    tenant: &Tenant,
    trace: &RequestId,
) -> Result<Begun, Failure> {
    let named = asked.request_id.as_deref().map(|id| JobId(request_id::of_name(agent, tenant, id)));
    if let Some(id) = &named
        && let Some(begun) = again(app, agent, asked, id, tenant).await?
    {
        return Ok(begun);
    }
    if let Some(id) = &asked.request_id
        && find::run(app, agent, id, tenant).await.is_ok()
    {
        return Err(OjsError::conflict(format!(
            "`{id}` is a run of this agent; name the request otherwise."
        ))
        .into());
    }
    let run = match &asked.run_id {
        Some(id) => Some(find::run(app, agent, id, tenant).await?),
        None => None,
    };
    let mut fields = fields(agent, asked, input);
    configure::apply(app, agent, tenant, run.as_ref(), &mut fields).await?;
    if let Some(id) = &named {
        fields.insert("id", id.as_str());
    }
    trace.keep(&mut fields);
    let job = accept(app, fields, tenant.name(), app.api.clock.now()).await?;
    if run.is_some() {
        return Err(OjsError::unsupported("This server does not continue runs.").into());
    }
    let id = job.id.clone();
    let began = job.engagement.as_ref().map(|new| new.id.clone());
    match app.api.store.intake.push(vec![job]).await {
        Ok(_) => {}
        // The same request at the same time.
        Err(StoreError::DuplicateJob(_)) if named.is_some() => {
            let begun = again(app, agent, asked, &id, tenant).await?;
            return begun.ok_or_else(|| OjsError::duplicate(id.as_str()).into());
        }
        Err(error) => return Err(error.into()),
    }
    let began = began.ok_or_else(|| OjsError::internal("The job has no engagement."))?;
    let request_id = asked.request_id.clone().unwrap_or_else(|| id.0.clone());
    Ok(Begun { job: id, request_id, run: find::run(app, agent, began.as_str(), tenant).await? })
}

/// The request that was accepted under this name, if it is the same.
async fn again(
    app: &App,
    agent: &str,
    asked: &Asked,
    id: &JobId,
    tenant: &Tenant,
) -> Result<Option<Begun>, Failure> {
    let Some(job) = app.api.store.views.job_of(id, tenant.name()).await? else { return Ok(None) };
    let request_id = name::of(&job);
    if name::kept(&job)["digest"] != asked.digest.as_str() {
        let message = format!("Request `{request_id}` was sent before with another body.");
        return Err(OjsError::conflict(message).with("request_id", request_id).into());
    }
    let run = job.agent.map(|agent| agent.engagement_id);
    let run = run.ok_or_else(|| OjsError::internal("The job has no engagement."))?;
    Ok(Some(Begun { job: job.id, request_id, run: find::run(app, agent, run.as_str(), tenant).await? }))
}

/// The fields of an enqueue request. `request_metadata.user` says whose request it is, as `metadata.user` does where
/// engagements are begun (AP-A15); everything else in it is kept and means nothing.
fn fields(agent: &str, asked: &Asked, input: &str) -> RawObject {
    let mut own = asked.kept.clone();
    own.insert("request_id".to_owned(), asked.request_id.as_deref().into());
    own.insert("digest".to_owned(), asked.digest.as_str().into());
    let user = asked.kept.get("request_metadata").and_then(|metadata| metadata.get("user"));
    let mut meta = RawObject::new();
    meta.insert("agent", agent);
    if let Some(user) = user.filter(|user| user.is_object()) {
        meta.insert("user", user.clone());
    }
    meta.insert(name::MEMBER, Value::Object(own));
    let mut fields = RawObject::new();
    fields.insert("type", JOB_TYPE);
    fields.insert("args", json!([input]));
    fields.insert("meta", meta);
    fields
}
