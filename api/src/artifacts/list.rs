//! `GET /engagements/{id}/artifacts`: the files that were made in an engagement.

use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::{Segment, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_domain::artifact::Artifact;
use utoipa::ToSchema;

/// A file that was made in an engagement.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ArtifactRow {
    /// Its id.
    pub artifact_id: String,
    /// The name of the file.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Its size.
    pub bytes: i64,
    /// Lower-case hex; also its `ETag`.
    sha256: String,
    /// The address of its download: a path of this server.
    url: String,
    engagement_id: String,
    /// As long as it is on record.
    job_id: Option<String>,
    /// The call that made it.
    call_id: String,
    /// The turn that made it.
    pub turn: i64,
    /// RFC 3339, UTC.
    pub created_at: String,
}

/// Files, in order.
#[derive(Serialize, ToSchema)]
pub(crate) struct Artifacts {
    /// In order.
    pub artifacts: Vec<ArtifactRow>,
}

/// The files that were made in an engagement, in order. A fork has those of the past that it shares.
#[utoipa::path(
    get, path = "/engagements/{id}/artifacts", operation_id = "list_artifacts", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The engagement.")),
    responses((status = 200, description = "The artifacts.", body = Artifacts)),
)]
pub(crate) async fn list(State(app): State<Shared>, Segment(id): Segment, tenant: Tenant) -> Answer {
    let (engagement, agent, _) = crate::engagements::find(&app, &id, &tenant).await?;
    let found = super::visible(&app, &engagement, &agent).await?;
    Ok(reply::ok(&Artifacts { artifacts: found.into_iter().map(ArtifactRow::from).collect() }))
}

impl From<Artifact> for ArtifactRow {
    fn from(artifact: Artifact) -> Self {
        Self {
            url: artifact.path(),
            artifact_id: artifact.id.0,
            name: artifact.name,
            media_type: artifact.media_type,
            bytes: artifact.bytes,
            sha256: artifact.digest,
            engagement_id: artifact.engagement_id.0,
            job_id: artifact.job_id.map(|id| id.to_string()),
            call_id: artifact.call_id.0,
            turn: artifact.turn,
            created_at: artifact.created_at.to_rfc3339(),
        }
    }
}
