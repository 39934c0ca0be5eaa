//! A further input of an engagement: shared by OpenAgentSpec's endpoint and the runs of the Agent Protocol.

use super::find;
use crate::api::App;
use crate::ojs::jobs::accept;
use crate::ojs::jobs::submitter::MembersFrom;
use crate::principals::work;
use crate::reply::Failure;
use crate::request::Tenant;
use turnstone_domain::principal::WorkKind;
use turnstone_domain::schema::Allowance;
use turnstone_domain::terms::Continues;
use turnstone_domain::{EngagementId, Job, JobId, JobState, NewJob, RawObject};
use turnstone_ojs::{OjsError, rules};

/// The options of the first input that apply to that input alone.
const OF_ONE_INPUT: [&str; 5] = ["delay_until", "scheduled_at", "expires_at", "unique", "pending"];
/// The members of its `meta` that apply to that input alone.
const OF_ONE_REQUEST: [&str; 6] =
    ["a2a", "agent_protocol", "baggage", "request_id", "traceparent", "tracestate"];

/// A further input.
pub(crate) struct Further {
    /// The id of its job, when the caller names it.
    pub(crate) job: Option<JobId>,
    /// OJS `args`: normalized as those of every agent job are.
    pub(crate) args: turnstone_domain::RawJson,
    /// Its `meta`; absent members stay as they were with the input before.
    pub(crate) metadata: RawObject,
    /// `ext_agent_*` fields that apply to the engagement from now on.
    pub(crate) settings: RawObject,
    /// The rule for an engagement that has ended.
    pub(crate) continues: Continues,
}

/// A further input that was taken.
pub(crate) struct Taken {
    /// The engagement.
    pub(crate) engagement: EngagementId,
    /// Its job.
    pub(crate) job: JobId,
    /// `pending` while other inputs of the engagement are processed.
    pub(crate) state: JobState,
}

/// Enqueues a further input: the same agent as it was when the engagement began, the same user, budget and queue. It is
/// processed when the inputs before it have ended, in whatever state.
///
/// # Errors
/// 404 when there is no such engagement of this tenant. 403 when
/// the principal may not act for the user, or `metadata.user` is another user or has another address. 409 when the
/// engagement takes no input, or the id of the job is taken (`duplicate_job`). The errors of enqueueing a job.
pub(crate) async fn say(app: &App, id: &str, tenant: &Tenant, said: Further) -> Result<Taken, Failure> {
    let (engagement, agent, latest) = find(app, id, tenant).await?;
    work::check_user(&tenant.principal, WorkKind::Chosen, &engagement.user)?;
    let latest = app.api.store.views.job(&latest).await?;
    let latest = latest.ok_or_else(|| OjsError::not_found("engagement", id))?;
    let changed = !said.settings.is_empty();
    let named = said.metadata.contains("user");
    let continues = said.continues;
    let job = said.job.clone();
    let now = app.api.clock.now();
    let (fields, mut allowance) = (fields(&latest, &engagement.agent, said), Allowance::default());
    // The user is the engagement's, which is compared below.
    let sender = (&*tenant.principal, latest.tenant.as_deref(), MembersFrom::Store);
    let request = accept::read(&mut allowance, fields, sender, now).await?;
    let mut new: NewJob = request.into_new_job(Some(agent.clone()), app.api.ids.as_ref())?;
    rules::check(&new)?;
    app.schemas.check(&new).await?;
    let Some(begun) = &mut new.engagement else {
        return Err(OjsError::internal("The job has no engagement.").into());
    };
    if named && begun.user.id != engagement.user.id {
        let message = format!("Engagement {id} is another user's.");
        return Err(OjsError::forbidden(message).into());
    }
    if named && begun.user.email.is_some() && begun.user.email != engagement.user.email {
        let message = format!("meta.user.email: engagement {id} began with another address of its user.");
        let hint = "Leave the address out, or begin an engagement with the new one.";
        return Err(OjsError::new(403, "forbidden", message, hint).with("field", "meta.user.email").into());
    }
    begun.id = engagement.id.clone();
    if !changed {
        begun.agent = agent;
    }
    begun.user = engagement.user;
    new.terms.continues = Some(continues);
    if let Some(job) = job {
        new.id = job;
    }
    new.queue = latest.queue;
    new.priority = latest.priority;
    let pushed = app.api.store.intake.push(vec![new]).await?.pop();
    let pushed = pushed.ok_or_else(|| OjsError::internal("The store took nothing."))?;
    Ok(Taken { engagement: engagement.id, job: pushed.id, state: pushed.state })
}

/// Returns the fields of an enqueue request: the input, on the terms of the input before.
fn fields(latest: &Job, agent: &str, said: Further) -> RawObject {
    let (mut options, mut before) = (latest.envelope.options.clone(), latest.envelope.meta.clone());
    for name in OF_ONE_INPUT {
        options.remove(name);
    }
    for name in OF_ONE_REQUEST {
        before.remove(name);
    }
    let mut meta = said.metadata;
    meta.insert("agent", agent);
    meta.extend_new(before.iter().map(|(name, value)| (name.to_owned().into(), value.clone())));
    let mut fields = RawObject::new();
    fields.insert("type", latest.job_type.as_str());
    fields.insert("args", said.args);
    fields.insert("meta", meta);
    fields.insert("options", options);
    fields.extend_new(said.settings.iter().map(|(name, value)| (name.to_owned().into(), value.clone())));
    fields
}
