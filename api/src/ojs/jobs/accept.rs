//! Makes a job that can be pushed of the JSON members that a client sent. Single jobs, jobs of a batch, steps of a workflow
//! and templates of cron entries are all read here, so that the same rules apply to them.

use super::flow;
use super::submitter::{self, MembersFrom};
use crate::api::App;
use crate::blocking;
use crate::principals::work;
use crate::reply::Failure;
use crate::request::Tenant;
use std::collections::HashMap;
use turnstone_domain::principal::{Principal, WorkKind};
use turnstone_domain::schema::Allowance;
use turnstone_domain::{AgentDefinition, NewJob, RawObject, Timestamp};
use turnstone_ojs::{EnqueueRequest, agent_fields, rules};

/// The state of reading one request.
#[derive(Default)]
pub(super) struct AcceptState {
    /// Agents that were looked up, by name and tenant of the job; `None` when there is none of that name for the tenant.
    agents: HashMap<(String, Option<String>), Option<AgentDefinition>>,
    from: MembersFrom,
    /// The cost that the schemas of the request may still have; it bounds the time to compile them.
    allowance: Allowance,
}

/// Checks the members of an enqueue request and makes the job. Nothing is stored.
///
/// # Errors
/// 400 or 422 for a wrong member, with its name. 403 for a user that the principal may not name. The errors of the store.
pub(crate) async fn accept(
    app: &App,
    fields: RawObject,
    tenant: &Tenant,
    now: Timestamp,
) -> Result<NewJob, Failure> {
    accept_knowing(app, &mut AcceptState::default(), fields, tenant, now).await
}

/// Does the same as [`accept`] for members that were checked when they were stored.
pub(crate) async fn accept_stored(
    app: &App,
    fields: RawObject,
    tenant: &Tenant,
    now: Timestamp,
) -> Result<NewJob, Failure> {
    let mut stored = AcceptState { from: MembersFrom::Store, ..AcceptState::default() };
    accept_knowing(app, &mut stored, fields, tenant, now).await
}

/// Reads the members of a job that a principal sends for a tenant. Members with schemas are read on a thread that may block,
/// because to compile a schema may take long.
pub(crate) async fn read(
    allowance: &mut Allowance,
    mut fields: RawObject,
    (principal, tenant, from): (&Principal, Option<&str>, MembersFrom),
    now: Timestamp,
) -> Result<EnqueueRequest, Failure> {
    submitter::apply(&mut fields, principal, from)?;
    if !agent_fields::brings_schemas(&fields) {
        return Ok(EnqueueRequest::from_fields(fields, tenant, now)?);
    }
    let (mut taken, tenant) = (std::mem::take(allowance), tenant.map(str::to_owned));
    let reading = move || {
        let request = agent_fields::take_schemas(&fields, &mut taken)
            .and_then(|()| EnqueueRequest::from_fields(fields, tenant.as_deref(), now));
        (request, taken)
    };
    let request;
    (request, *allowance) = blocking::run(reading).await?;
    Ok(request?)
}

/// Does the same as [`accept`] for one of many jobs of a request: each agent is looked up once.
pub(super) async fn accept_knowing(
    app: &App,
    known: &mut AcceptState,
    fields: RawObject,
    tenant: &Tenant,
    now: Timestamp,
) -> Result<NewJob, Failure> {
    let sender = (&*tenant.principal, tenant.name(), known.from);
    let request = read(&mut known.allowance, fields, sender, now).await?;
    let known = &mut known.agents;
    let registered = match request.agent_name() {
        Some(name) => {
            let key = (name.to_owned(), request.tenant().map(str::to_owned));
            match known.get(&key) {
                Some(found) => found.clone(),
                None => {
                    let found = app.api.store.views.agent(name, request.tenant()).await?;
                    known.entry(key).or_insert(found.map(|record| record.definition)).clone()
                }
            }
        }
        None => None,
    };
    let is_named = request.agent_name().is_some();
    let mut job = request.into_new_job(registered, app.api.ids.as_ref())?;
    if app.api.options.require_agent && job.engagement.is_some() && !is_named {
        return Err(submitter::unnamed().into());
    }
    if let Some(parent) = &job.terms.works_for
        && let Some((engagement, agent)) =
            app.api.store.views.engagement_of_job(parent, job.terms.tenant.as_deref()).await?
    {
        // It spends the budget of the parent, works for the parent's user, and joins the parent's tree.
        work::check_user(&tenant.principal, WorkKind::Chosen, &engagement.user)?;
        job.terms.max_jobs_per_tree = Some(app.api.options.fan_out.of(&agent).max_jobs_per_tree);
    }
    // Checks of the whole job are here, one per line: they may refuse it, and change nothing.
    rules::check(&job)?;
    flow::check(app, &job)?;
    app.schemas.check(&job).await?;
    Ok(job)
}
