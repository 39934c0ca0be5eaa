//! Engagements that come from another store.

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_domain::record::EngagementRecord;

/// Why nothing was taken in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ImportRefusal {
    /// This is here already.
    Known(String),
}

/// Engagements that come from another store.
#[async_trait]
pub trait Transfers: Send + Sync + 'static {
    /// Takes in an engagement that has ended, with its ids, in one transaction.
    async fn import(
        &self,
        record: EngagementRecord,
        at: Timestamp,
    ) -> Result<Result<(), ImportRefusal>, StoreError>;
}
