//! From what a client sent to a job that can be pushed: the one way in, for a body, a member of a batch, a step of a
//! workflow and the template of a cron entry alike.

use crate::api::App;
use crate::reply::Failure;
use turnstone_domain::{NewJob, RawObject, Timestamp};
use turnstone_ojs::EnqueueRequest;

/// Checks the members of an enqueue request and makes the job. `tenant` is the one of the header. Nothing is stored.
pub(crate) async fn accept(
    app: &App,
    fields: RawObject,
    tenant: Option<&str>,
    now: Timestamp,
) -> Result<NewJob, Failure> {
    let request = EnqueueRequest::from_fields(fields, tenant, now)?;
    let registered = match request.agent_name() {
        Some(name) => app.api.store.views.agent(name).await?.map(|record| record.definition),
        None => None,
    };
    let job = request.into_new_job(registered, app.api.ids.as_ref())?;
    // Gates that look at the whole job stand here, each one line: they may refuse it, and change nothing.
    Ok(job)
}
