//! `GET /principal`: the principal of the request.

use crate::reply::{self, Answer};
use crate::request::By;
use serde::{Deserialize, Serialize};
use turnstone_domain::principal::Role;
use utoipa::ToSchema;

/// The principal of a request.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct OwnPrincipal {
    /// Its name.
    pub name: String,
    /// The id of its key; null for tokens, configured keys and local clients.
    key_id: Option<String>,
    /// null for the fleet.
    pub tenant: Option<String>,
    /// Its permissions.
    pub roles: Vec<String>,
    /// The users and reviewers whose names it may use; `*` means all.
    pub acts_for: Vec<String>,
    /// The verified e-mail address of its token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    email: Option<String>,
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
        roles: principal.roles.iter().map(|role| Role::as_str(*role).to_owned()).collect(),
        acts_for: principal.acts_for.clone(),
        email: principal.email.clone(),
    }))
}
