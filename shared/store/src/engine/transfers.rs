//! Engagements that come from another store.

use super::Engine;
use super::ops::import;
use crate::StoreError;
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::Timestamp;
use turnstone_domain::record::EngagementRecord;

/// Why nothing was taken in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ImportRefusal {
    /// This is here already.
    Known(String),
}

/// Engagements that come from another store.
#[derive(Clone)]
pub struct Transfers(pub(super) Arc<Engine>);

impl Transfers {
    /// Takes in an engagement that has ended, with its ids, in one transaction.
    #[boxed]
    pub async fn import(
        &self,
        record: EngagementRecord,
        at: Timestamp,
    ) -> Result<Result<(), ImportRefusal>, StoreError> {
        self.0
            .write((record, at), |tx, (record, at)| {
                Box::pin(import::apply(&mut tx.session, &mut tx.unit, record, *at, &*tx.ids))
            })
            .await
    }
}
