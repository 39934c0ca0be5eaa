//! Reads about artifacts.

use super::Engine;
use super::rows::{Fields, Inconsistency, get, maybe, time, wrong};
use super::session::Reader;
use super::views::{all, one};
use crate::{Artifacts, StoreError, sql};
use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use turnstone_domain::artifact::Artifact;
use turnstone_domain::{ArtifactId, CallId, EngagementId, JobId};

fn decode(row: &impl Fields) -> Result<Artifact, Inconsistency> {
    Ok(Artifact {
        id: ArtifactId(get(row, "id")?),
        engagement_id: EngagementId(get(row, "engagement_id")?),
        job_id: maybe::<String>(row, "job_id")?.map(JobId),
        call_id: CallId(get(row, "call_id")?),
        turn: get(row, "turn")?,
        name: get(row, "name")?,
        media_type: get(row, "media_type")?,
        digest: get(row, "digest")?,
        bytes: get(row, "bytes")?,
        created_at: time(row, "created_at")?,
        withheld: get(row, "withheld")?,
    })
}

/// See [`Artifacts::artifacts`].
pub(super) async fn of_engagement<R: Reader>(
    readers: &R,
    engagement: &EngagementId,
) -> Result<Vec<Artifact>, StoreError> {
    let values = [engagement.as_str().into()];
    all(readers, "list artifacts", &sql::SELECT_ARTIFACTS_OF_ENGAGEMENT, &values, decode).await
}

/// See [`Artifacts::artifact_content`].
pub(super) async fn content<R: Reader>(readers: &R, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
    let values = [id.as_str().into()];
    one(readers, "read what is in an artifact", &sql::SELECT_ARTIFACT_CONTENT, &values, |row| {
        let text = get::<&str>(row, "content")?;
        BASE64_STANDARD.decode(text).map_err(|error| wrong("content", error))
    })
    .await
}

#[async_trait]
impl<R: Reader> Artifacts for Engine<R> {
    async fn artifacts(&self, engagement: &EngagementId) -> Result<Vec<Artifact>, StoreError> {
        of_engagement(&self.readers, engagement).await
    }

    async fn artifact(&self, id: &ArtifactId, tenant: Option<&str>) -> Result<Option<Artifact>, StoreError> {
        let values = [id.as_str().into(), tenant.into()];
        one(&self.readers, "read an artifact", &sql::SELECT_ARTIFACT_BY_ID, &values, decode).await
    }

    async fn artifact_content(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError> {
        content(&self.readers, id).await
    }
}
