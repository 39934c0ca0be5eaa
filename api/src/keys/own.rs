//! `GET /principal`: the principal of the request.

use crate::reply::{self, Answer};
use crate::request::By;
use serde::Serialize;
use turnstone_domain::principal::Role;
use utoipa::ToSchema;

/// The principal of a request.
#[derive(Serialize, ToSchema)]
struct OwnPrincipal {
    name: String,
    /// The id of its key; null for tokens, configured keys and local clients.
    key_id: Option<String>,
    /// null for the fleet.
    tenant: Option<String>,
    roles: Vec<&'static str>,
    acts_for: Vec<String>,
}

/// Shows the principal of the request: its tenant, its roles, and the names that it may use.
#[utoipa::path(
    get, path = "/principal", operation_id = "show_principal", tag = "access",
    security(("tenant" = [])),
    responses((status = 200, description = "The principal.", body = OwnPrincipal)),
)]
pub(crate) async fn own(By(principal): By) -> Answer {
    Ok(reply::ok(&OwnPrincipal {
        name: principal.name.clone(),
        key_id: principal.key.clone(),
        tenant: principal.tenant.clone(),
        roles: principal.roles.iter().map(|role| Role::as_str(*role)).collect(),
        acts_for: principal.acts_for.clone(),
    }))
}
