//! Artifacts: files that agents made. They are written with the outcome of the call that made them
//! ([`TurnWrite::artifacts`](turnstone_domain::TurnWrite::artifacts)) and go with their engagement.

use super::Engine;
use super::rows::{Fields, Inconsistency, get, wrong};
use super::session::Reader;
use super::views::{many, one};
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;
use turnstone_domain::artifact::Artifact;
use turnstone_domain::{ArtifactId, CallId, EngagementId, JobId};

fn decode(row: &impl Fields) -> Result<Artifact, Inconsistency> {
    Ok(Artifact {
        id: ArtifactId(get(row, "id")?),
        engagement_id: EngagementId(get(row, "engagement_id")?),
        job_id: get::<Option<String>>(row, "job_id")?.map(JobId),
        call_id: CallId(get(row, "call_id")?),
        part: get(row, "part")?,
        turn: get(row, "turn")?,
        name: get(row, "name")?,
        media_type: get(row, "media_type")?,
        digest: get(row, "digest")?,
        bytes: get(row, "bytes")?,
        created_at: get(row, "created_at")?,
        withheld: get(row, "withheld")?,
    })
}

/// See [`Artifacts::artifacts`].
pub(super) async fn of_engagement(
    readers: &Reader,
    engagement: &EngagementId,
) -> Result<Vec<Artifact>, StoreError> {
    let values = [engagement.as_str().into()];
    many(readers, "list artifacts", &sql::SELECT_ARTIFACTS_OF_ENGAGEMENT, &values, decode).await
}

/// See [`Artifacts::artifact_content`].
pub(super) async fn content(readers: &Reader, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
    let values = [id.as_str().into()];
    one(readers, "read what is in an artifact", &sql::SELECT_ARTIFACT_CONTENT, &values, |row| {
        let text = get::<&str>(row, "content")?;
        BASE64_STANDARD.decode(text).map_err(|error| wrong("content", error))
    })
    .await
}

/// Reads artifacts.
#[derive(Clone)]
pub struct Artifacts(pub(super) Arc<Engine>);

impl Artifacts {
    /// The artifacts of an engagement, in order, with those of the past that it shares.
    #[boxed]
    pub async fn artifacts(&self, engagement: &EngagementId) -> Result<Vec<Artifact>, StoreError> {
        of_engagement(&self.0.readers, engagement).await
    }

    /// An artifact of this tenant; without one, of any tenant.
    #[boxed]
    pub async fn artifact(
        &self,
        id: &ArtifactId,
        tenant: Option<&str>,
    ) -> Result<Option<Artifact>, StoreError> {
        let values = [id.as_str().into(), tenant.into()];
        one(&self.0.readers, "read an artifact", &sql::SELECT_ARTIFACT_BY_ID, &values, decode).await
    }

    /// Returns the content of an artifact.
    #[boxed]
    pub async fn artifact_content(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        content(&self.0.readers, id).await
    }
}
