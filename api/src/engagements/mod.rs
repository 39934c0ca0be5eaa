//! Engagements: state, conversation, checkpoints, tool journal, audit and events.

pub(crate) mod answer;
pub(crate) mod answering;
mod audit;
pub(crate) mod awaited_budget;
mod checkpoints;
pub(crate) mod diff;
mod events;
mod export;
pub(crate) mod exposed;
pub(crate) mod fork;
pub(crate) mod further;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod messages;
mod object;
pub(crate) mod routes;
mod send;
mod session_state;
mod show;
pub(crate) mod state;
mod tool_calls;
pub(crate) mod visible;
pub(crate) mod waiting;

pub(crate) use show::open_review;
pub(crate) use state::{prompt, results};

use crate::api::App;
use crate::reply::Failure;
use crate::request::Tenant;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::{AgentDefinition, EngagementId, JobId, JobState};
use turnstone_ojs::OjsError;

/// Refuses a tenant the audit and the export before the answer has passed an output guardrail (OAS-43). Only operators
/// of the server may read them until then.
async fn not_held_back(
    app: &App,
    agent: &AgentDefinition,
    job: &JobId,
    tenant: &Tenant,
) -> Result<(), Failure> {
    if tenant.name().is_none() || !agent.guardrails.hold_back() {
        return Ok(());
    }
    // A guarded agent's delegate has no answer of its own that releases it.
    let passes = !agent.guardrails.is_shown_by_its_caller();
    if passes && app.api.store.views.job(job).await?.is_some_and(|job| job.state == JobState::Completed) {
        return Ok(());
    }
    let message =
        "An output guardrail withholds the texts of this engagement; only operators of the server see them.";
    Err(OjsError::new(403, "forbidden", message, "Leave the header X-OJS-Tenant out.").into())
}

/// Returns the engagement, its agent, and the job that processes its input or else its latest one; or 404.
pub(crate) async fn find(
    app: &App,
    id: &str,
    tenant: &Tenant,
) -> Result<(Engagement, AgentDefinition, JobId), Failure> {
    let found = app.api.store.views.engagement_of(&EngagementId::from(id), tenant.name()).await?;
    found.ok_or_else(|| OjsError::not_found("engagement", id).into())
}
