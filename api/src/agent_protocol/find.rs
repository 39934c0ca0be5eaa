//! Agents, runs and requests by the names of a client.

use super::configured::{self, ConfigureRecord};
use super::{name, request_id};
use crate::agents::engage::of_key;
use crate::api::App;
use crate::caller::{Caller, Who};
use crate::reply::Failure;
use crate::request::Tenant;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::{EngagementId, Job, JobId};
use turnstone_ojs::OjsError;
use turnstone_store::AgentRecord;

/// Returns a registered agent that serves the tenant, or 404.
pub(super) async fn agent(app: &App, name: &str, tenant: &Tenant) -> Result<AgentRecord, Failure> {
    let found = app.api.store.views.agent(name, tenant.name()).await?;
    found.ok_or_else(|| OjsError::not_found("agent", name).into())
}

/// Returns a run of this agent, or 404: also when it is another agent's or another tenant's.
pub(super) async fn run(app: &App, agent: &str, id: &str, tenant: &Tenant) -> Result<Engagement, Failure> {
    let found = app.api.store.views.engagement_of(&EngagementId::from(id), tenant.name()).await?;
    let run = found.map(|(engagement, ..)| engagement).filter(|run| run.agent == agent);
    run.ok_or_else(|| OjsError::not_found("run", id).into())
}

/// Returns a request to this agent with its run, or 404.
pub(super) async fn request(
    app: &App,
    agent: &str,
    id: &str,
    tenant: &Tenant,
) -> Result<(Job, Engagement), Failure> {
    let missing = || Failure::from(OjsError::not_found("request", id));
    let views = &app.api.store.views;
    let names = app.names().await?;
    // A name that the client chose determines the job's id; otherwise the request's name is the id.
    let job = match names
        .find(&app.api.store.views, &request_id::of_name(agent, tenant.name(), id), tenant.name())
        .await?
    {
        Some(job) => Some(job),
        None => views.job_of(&JobId(id.to_owned()), tenant.name()).await?,
    };
    let job = job.filter(|job| name::of(names, job) == id || job.id.shown() == id).ok_or_else(missing)?;
    let engagement = job.agent.as_ref().map(|agent| agent.engagement_id.clone()).ok_or_else(missing)?;
    Ok((job, run(app, agent, engagement.as_str(), tenant).await.map_err(|_| missing())?))
}

/// Returns the same, of the requests that this caller may read: another server sees only those that it sent itself.
pub(super) async fn request_of(
    app: &App,
    agent: &str,
    id: &str,
    tenant: &Tenant,
    peer: Option<&str>,
) -> Result<(Job, Engagement), Failure> {
    let (job, run) = request(app, agent, id, tenant).await?;
    match peer.is_none() || name::is_of(&job, peer) {
        true => Ok((job, run)),
        false => Err(OjsError::not_found("request", id).into()),
    }
}

/// Returns the local name of another server's request that it wants to end or to answer. It sent the request under that
/// name, or began it at the agent's own address with that `Idempotency-Key`.
///
/// # Errors
/// 404 when it sent no request of that name.
pub(super) async fn own(
    app: &App,
    agent: &str,
    id: &str,
    tenant: &Tenant,
    peer: &str,
) -> Result<String, Failure> {
    let begun = of_key(agent, id, tenant, &Caller::Peer(peer.to_owned()));
    if let Some(begun) = app.names().await?.find(&app.api.store.views, &begun, tenant.name()).await? {
        return Ok(begun.id.to_string());
    }
    request_of(app, agent, id, tenant, Some(peer)).await.map(|_| id.to_owned())
}

/// The request or run that an id of the path names: both share one namespace (AP-A3).
pub(super) enum Subject {
    Request(Box<Job>, Engagement),
    /// A ConfigureRequest, or the run that is its own.
    Configured(Box<ConfigureRecord>),
    Run(Engagement),
}

/// Returns a request or a run of this agent, or 404. Another server sees the requests that it sent itself, and no run:
/// others may take part in it.
pub(super) async fn subject(app: &App, agent: &str, id: &str, who: &Who) -> Result<Subject, Failure> {
    let peer = who.caller.peer();
    if let Ok((job, run)) = request_of(app, agent, id, &who.tenant, peer).await {
        return Ok(Subject::Request(Box::new(job), run));
    }
    let missing = || Failure::from(OjsError::not_found("request or run", id));
    if peer.is_some() {
        return Err(missing());
    }
    if let Ok(run) = run(app, agent, id, &who.tenant).await {
        return Ok(Subject::Run(run));
    }
    let record = configured::find(app, agent, id, &who.tenant).await?;
    record.map(|record| Subject::Configured(Box::new(record))).ok_or_else(missing)
}
