//! Any living state `→ discarded` for jobs whose `expires_at` has passed (OJS core §3).

use super::Duty;
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_store::{StoreError, Upkeep};

/// See the module.
pub(crate) struct ExpireJobs;

#[async_trait]
impl Duty for ExpireJobs {
    fn name(&self) -> &'static str {
        "expire_jobs"
    }

    fn frees_jobs(&self) -> bool {
        false
    }

    async fn batch(&self, upkeep: &dyn Upkeep, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        upkeep.expire_jobs(now, limit).await
    }
}
