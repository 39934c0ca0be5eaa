//! Engagements that come from another store.

use super::Engine;
use super::ops::import;
use crate::StoreError;
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::Timestamp;
use turnstone_domain::agent::Admission;
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
    /// Takes in an engagement that has ended, with its ids, in one transaction. Without `admitted`, it runs only when an
    /// agent with the same definition is registered.
    #[boxed]
    pub async fn import(
        &self,
        record: EngagementRecord,
        admitted: Option<Admission>,
        at: Timestamp,
    ) -> Result<Result<(), ImportRefusal>, StoreError> {
        self.0
            .write((record, admitted, at), |tx, (record, admitted, at)| {
                let import = (&*record, *admitted);
                Box::pin(import::apply(&mut tx.session, &mut tx.unit, import, *at, &*tx.ids))
            })
            .await
    }
}
