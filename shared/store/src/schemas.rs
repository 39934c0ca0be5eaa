//! What the arguments of a job type have to look like.

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::schema::{Mode, RegisteredSchema};

/// What the arguments of a job type have to look like.
#[async_trait]
pub trait Schemas: Send + Sync + 'static {
    /// Registers a version; returns false, and changes nothing, when it is there already.
    async fn register(&self, schema: RegisteredSchema) -> Result<bool, StoreError>;

    /// Schemas by job type, the newest version first; `None` stands for every one.
    async fn schemas(
        &self,
        job_type: Option<&str>,
        version: Option<i64>,
    ) -> Result<Vec<RegisteredSchema>, StoreError>;

    /// Sets the mode of one version, or of all; returns how many there are.
    async fn set_mode(&self, job_type: &str, version: Option<i64>, mode: Mode) -> Result<usize, StoreError>;

    /// Removes a version; returns whether there was one.
    async fn remove(&self, job_type: &str, version: i64) -> Result<bool, StoreError>;
}
