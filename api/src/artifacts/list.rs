//! `GET /engagements/{id}/artifacts`: the files that were made in an engagement.

use crate::api::Shared;
use crate::docs::rows;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde_json::{Value, json};
use turnstone_domain::artifact::Artifact;

/// The files that were made in an engagement, in order. A fork has those of the past that it shares.
#[utoipa::path(
    get, path = "/engagements/{id}/artifacts", operation_id = "list_artifacts", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The engagement.")),
    responses((status = 200, description = "The artifacts.", body = rows::Artifacts)),
)]
pub(crate) async fn list(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let (engagement, agent, _) = crate::engagements::find(&app, &id, &tenant).await?;
    let found = super::visible(&app, &engagement, &agent).await?;
    Ok(reply::ok(&json!({"artifacts": found.iter().map(shown).collect::<Vec<_>>()})))
}

fn shown(artifact: &Artifact) -> Value {
    json!({
        "artifact_id": artifact.id,
        "name": artifact.name,
        "media_type": artifact.media_type,
        "bytes": artifact.bytes,
        "sha256": artifact.digest,
        "url": artifact.path(),
        "engagement_id": artifact.engagement_id,
        "job_id": artifact.job_id,
        "call_id": artifact.call_id,
        "turn": artifact.turn,
        "created_at": artifact.created_at.to_rfc3339(),
    })
}
