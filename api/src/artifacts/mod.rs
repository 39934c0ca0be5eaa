//! Artifacts: files that agents made, listed and downloaded.

mod download;
pub(crate) mod list;
pub(crate) mod routes;
mod saved_name;

pub use saved_name::saved_name;

use crate::api::App;
use crate::engagements::visible::Visible;
use crate::reply::Failure;
use turnstone_domain::AgentDefinition;
use turnstone_domain::artifact::Artifact;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::tool_call::ToolOutcome;

/// The most delegates of a job that are read.
const MOST_LINKS: u32 = 1000;

/// Returns the artifacts of an engagement that a caller may read. Those of calls with withheld output are left out.
/// With an output guardrail, only those of turns whose answer has passed it are included (OAS-43).
pub(crate) async fn visible(
    app: &App,
    engagement: &Engagement,
    agent: &AgentDefinition,
) -> Result<Vec<Artifact>, Failure> {
    let mut found = app.api.store.artifacts.artifacts(&engagement.id).await?;
    found.retain(|artifact| !artifact.withheld);
    if !found.is_empty() && !passed_its_caller(app, engagement, agent).await? {
        let visible = Visible::of(app, engagement, agent).await?;
        found.retain(|artifact| visible.has(artifact.turn));
    }
    Ok(found)
}

/// Returns true if the files come from a delegate whose answer its caller restricts, has let pass, and may show (OAS-35).
async fn passed_its_caller(
    app: &App,
    engagement: &Engagement,
    agent: &AgentDefinition,
) -> Result<bool, Failure> {
    if !agent.guardrails.for_restricted || agent.guardrails.for_guarded || agent.guardrails.output.is_some() {
        return Ok(false);
    }
    let store = &app.api.store;
    let Some((_, _, job)) = store.views.engagement(&engagement.id).await? else { return Ok(false) };
    let Some((parent, above)) = store.delegations.links(&job, 1).await?.parent else { return Ok(false) };
    let below = store.delegations.links(&parent, MOST_LINKS).await?.below;
    let call = below.into_iter().find(|link| link.job_id == job).and_then(|link| link.call_id);
    let (Some(call), Some((_, caller, _))) = (call, store.views.engagement(&above).await?) else {
        return Ok(false);
    };
    let call = store.questions.tool_call(&above, &call).await?.filter(|call| !call.withheld);
    let passed = call.is_some_and(|call| matches!(call.outcome, Some(ToolOutcome::Success { .. })));
    Ok(passed && !caller.guardrails.hold_back())
}
