//! Freezes: while one holds, turns of the fleet or of a tenant call no model and no tool.

use super::Engine;
use super::rows::{FreezeRow, freeze};
use super::session::Args;
use super::statement::Writes;
use super::views::all;
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::Timestamp;

/// A freeze that holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Freeze {
    /// The tenant; `None` for the whole fleet.
    pub tenant: Option<String>,
    /// Why, in the words of the operator.
    pub reason: Option<String>,
    /// The principal that froze it.
    pub frozen_by: String,
    /// Since when.
    pub frozen_at: Timestamp,
}

/// Freezes of the fleet and of tenants.
#[derive(Clone)]
pub struct Freezes(pub(super) Arc<Engine>);

impl Freezes {
    /// Returns all freezes, that of the fleet first. One that cannot be read is an error.
    #[boxed]
    pub async fn all(&self) -> Result<Vec<Freeze>, StoreError> {
        all(&self.0.readers, "read freezes", &sql::SELECT_FREEZES, &[], freeze).await
    }

    /// Freezes a tenant or the fleet. A freeze that holds gets this reason.
    #[boxed]
    pub async fn set(&self, freeze: Freeze) -> Result<(), StoreError> {
        self.0
            .write(freeze, |tx, freeze| {
                Box::pin(async move {
                    let mut writes = Writes::default();
                    writes.insert_over("freeze", vec![FreezeRow::from(freeze)]);
                    writes.run(&mut tx.session).await
                })
            })
            .await
    }

    /// Lifts the freeze of a tenant or of the fleet; returns whether there was one.
    #[boxed]
    pub async fn lift(&self, tenant: Option<&str>) -> Result<bool, StoreError> {
        self.0
            .write(tenant.unwrap_or_default().to_owned(), |tx, scope| {
                Box::pin(async move {
                    let values = [scope.as_str().into()];
                    let (action, text) = ("lift a freeze", &sql::DELETE_FREEZE);
                    Ok(tx.session.execute(action, text, Args::Values(&values)).await? > 0)
                })
            })
            .await
    }
}
