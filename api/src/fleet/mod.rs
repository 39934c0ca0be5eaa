//! The fleet itself: its workers and its circuit breakers.

pub(crate) mod breakers;
mod reset_breaker;
pub(crate) mod routes;
pub(crate) mod workers;

use crate::reply::Failure;
use crate::request::Tenant;
use turnstone_ojs::OjsError;

/// Breakers concern all tenants, and their names reveal agents and tools.
fn whole_fleet(tenant: &Tenant) -> Result<(), Failure> {
    match tenant.name() {
        None => Ok(()),
        Some(_) => {
            let hint = "Leave the header X-OJS-Tenant out.";
            let message = "Circuit breakers are the operator's, and not a tenant's.";
            Err(OjsError::new(403, "forbidden", message, hint).into())
        }
    }
}
