//! `active → available` for jobs whose lease ran out: the worker is gone, another one goes on from the last checkpoint.

use super::Duty;
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_store::{StoreError, Upkeep};

/// See the module.
pub(crate) struct ReapExpired;

#[async_trait]
impl Duty for ReapExpired {
    fn name(&self) -> &'static str {
        "reap_expired"
    }

    fn frees_jobs(&self) -> bool {
        true
    }

    async fn batch(&self, upkeep: &dyn Upkeep, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        upkeep.reap_expired(now, limit).await
    }
}
