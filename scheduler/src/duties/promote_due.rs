//! `scheduled → available` and `retryable → available` for jobs whose time has come (OJS core §6.3, OJS retry §4).

use super::Duty;
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_store::{StoreError, Upkeep};

/// See the module.
pub(crate) struct PromoteDue;

#[async_trait]
impl Duty for PromoteDue {
    fn name(&self) -> &'static str {
        "promote_due"
    }

    fn frees_jobs(&self) -> bool {
        true
    }

    async fn batch(&self, upkeep: &dyn Upkeep, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        upkeep.promote_due(now, limit).await
    }
}
