//! `open → expired` for reviews past their deadline; silence counts as no, and the parked job goes on to learn it.

use super::Duty;
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_store::{StoreError, Upkeep};

/// See the module.
pub(crate) struct ExpireReviews;

#[async_trait]
impl Duty for ExpireReviews {
    fn name(&self) -> &'static str {
        "expire_reviews"
    }

    fn frees_jobs(&self) -> bool {
        true
    }

    async fn batch(&self, upkeep: &dyn Upkeep, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        upkeep.expire_reviews(now, limit).await
    }
}
