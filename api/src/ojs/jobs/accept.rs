//! From what a client sent to a job that can be pushed: the one way in, for a body, a member of a batch, a step of a
//! workflow and the template of a cron entry alike.

use crate::api::App;
use crate::reply::Failure;
use std::collections::HashMap;
use turnstone_domain::{AgentDefinition, NewJob, RawObject, Timestamp};
use turnstone_ojs::{EnqueueRequest, rules};

/// Agents that were looked up, by name; `None` when there is none of that name.
pub(super) type Registered = HashMap<String, Option<AgentDefinition>>;

/// Checks the members of an enqueue request and makes the job. `tenant` is the one of the header. Nothing is stored.
pub(crate) async fn accept(
    app: &App,
    fields: RawObject,
    tenant: Option<&str>,
    now: Timestamp,
) -> Result<NewJob, Failure> {
    accept_knowing(app, &mut Registered::new(), fields, tenant, now).await
}

/// The same, for one of many: agents are looked up once.
pub(super) async fn accept_knowing(
    app: &App,
    known: &mut Registered,
    fields: RawObject,
    tenant: Option<&str>,
    now: Timestamp,
) -> Result<NewJob, Failure> {
    let request = EnqueueRequest::from_fields(fields, tenant, now)?;
    let registered = match request.agent_name() {
        Some(name) => match known.get(name) {
            Some(found) => found.clone(),
            None => {
                let found = app.api.store.views.agent(name).await?.map(|record| record.definition);
                known.entry(name.to_owned()).or_insert(found).clone()
            }
        },
        None => None,
    };
    let job = request.into_new_job(registered, app.api.ids.as_ref())?;
    // Gates that look at the whole job stand here, each one line: they may refuse it, and change nothing.
    rules::check(&job)?;
    app.schemas.check(app, &job).await?;
    Ok(job)
}
