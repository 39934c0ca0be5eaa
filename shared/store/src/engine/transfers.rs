//! Engagements that come from another store.

use super::Engine;
use super::ops::import;
use crate::StoreError;
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::agent::Admission;
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::{EngagementId, Timestamp};

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
    /// Takes in an engagement that has ended, in one transaction. Returns its id, which is a new one if another tenant has an
    /// engagement with the id of the record. Without `admitted`, it runs only when an agent with the same definition is
    /// registered.
    #[boxed]
    pub async fn import(
        &self,
        record: EngagementRecord,
        admitted: Option<Admission>,
        at: Timestamp,
    ) -> Result<Result<EngagementId, ImportRefusal>, StoreError> {
        self.0
            .write((record, admitted, at), |tx, (record, admitted, at)| {
                let import = (record, *admitted);
                Box::pin(import::apply(&mut tx.session, &mut tx.unit, import, *at, &*tx.ids))
            })
            .await
    }
}
