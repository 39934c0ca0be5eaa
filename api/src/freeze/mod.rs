//! Freezes: while one holds, turns of the fleet or of a tenant call no model and no tool.

pub(crate) mod lift;
pub(crate) mod list;
pub(crate) mod routes;
mod set;

use crate::reply::Failure;
use crate::request::Tenant;
use serde::{Deserialize, Serialize};
use turnstone_ojs::OjsError;
use turnstone_store::Freeze;
use utoipa::ToSchema;

/// A freeze that holds.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ShownFreeze {
    /// null for the whole fleet.
    pub tenant: Option<String>,
    /// In the words of the principal.
    pub reason: Option<String>,
    /// The principal.
    pub frozen_by: String,
    /// When it was set.
    pub frozen_at: String,
}

impl From<Freeze> for ShownFreeze {
    fn from(freeze: Freeze) -> Self {
        let Freeze { tenant, reason, frozen_by, frozen_at } = freeze;
        Self { tenant, reason, frozen_by, frozen_at: frozen_at.to_rfc3339() }
    }
}

/// Returns the tenant of a freeze: that of the principal, or the named one.
///
/// # Errors
/// 403 when a tenant names another one.
fn scope(principal: &Tenant, named: Option<String>) -> Result<Option<String>, Failure> {
    match (principal.name(), named) {
        (Some(own), Some(named)) if own != named => {
            let message = format!("A principal of tenant {own} freezes this tenant only.");
            let hint = "Leave `tenant` out, or use a key of the fleet.";
            Err(OjsError::new(403, "forbidden", message, hint).with("field", "tenant").into())
        }
        (Some(own), _) => Ok(Some(own.to_owned())),
        (None, named) => Ok(named.filter(|named| !named.is_empty())),
    }
}
