//! Artifacts: files that agents made. They are written with the outcome of the call that made them
//! ([`TurnWrite::artifacts`](turnstone_domain::TurnWrite::artifacts)) and go with their engagement.

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::artifact::Artifact;
use turnstone_domain::{ArtifactId, EngagementId};

/// Reads artifacts.
#[async_trait]
pub trait Artifacts: Send + Sync + 'static {
    /// The artifacts of an engagement, in order, with those of the past that it shares.
    async fn artifacts(&self, engagement: &EngagementId) -> Result<Vec<Artifact>, StoreError>;

    /// An artifact of this tenant; without one, of anybody.
    async fn artifact(&self, id: &ArtifactId, tenant: Option<&str>) -> Result<Option<Artifact>, StoreError>;

    /// What is in an artifact.
    async fn artifact_content(&self, id: &ArtifactId) -> Result<Option<Vec<u8>>, StoreError>;
}
