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

/// Returns the artifacts of an engagement that a caller may read. Those of calls with withheld output are left out.
/// With an output guardrail, only those of turns whose answer has passed it are included (OAS-43).
pub(crate) async fn visible(
    app: &App,
    engagement: &Engagement,
    agent: &AgentDefinition,
) -> Result<Vec<Artifact>, Failure> {
    let mut found = app.api.store.artifacts.artifacts(&engagement.id).await?;
    found.retain(|artifact| !artifact.withheld);
    if !found.is_empty() {
        let visible = Visible::of(app, engagement, agent).await?;
        found.retain(|artifact| visible.has(artifact.turn));
    }
    Ok(found)
}
