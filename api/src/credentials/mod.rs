//! Credentials that tools are called with, for users and for static identities (OAS-26, OAS-27). No endpoint returns a
//! secret.

pub(crate) mod forget;
pub(crate) mod list;
pub(crate) mod put;
pub(crate) mod routes;

use crate::reply::Failure;
use crate::request::Tenant;
use serde::{Deserialize, Serialize};
use turnstone_domain::agent::credential::{ANY_TOOL, Owner};
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// A credential, without the secret.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ShownCredential {
    /// user:ID, member:TENANT:ID or static:NAME.
    pub owner: String,
    /// The tool, or `*`.
    pub tool: String,
    /// The name of the header.
    pub header: String,
    /// reference or value.
    pub form: String,
    /// When it was set.
    pub updated_at: String,
}

/// Owner and tool of the path. Credentials are the operator's; a tenant has none.
fn place(owner: &str, tool: &str, tenant: &Tenant) -> Result<(Owner, String), Failure> {
    whole_fleet(tenant)?;
    let why = || format!("must be user:ID, member:TENANT:ID or static:NAME, and is `{owner}`");
    let owner = Owner::parse(owner).ok_or_else(|| OjsError::invalid_request("the owner", why()))?;
    let is_tool = tool == ANY_TOOL
        || ((1..=253).contains(&tool.len())
            && tool.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)));
    if !is_tool {
        let why = format!("must be a tool's name, or * for every tool, and is `{tool}`");
        return Err(OjsError::invalid_request("the tool", why).into());
    }
    Ok((owner, tool.to_owned()))
}

fn whole_fleet(tenant: &Tenant) -> Result<(), Failure> {
    match tenant.name() {
        None => Ok(()),
        Some(_) => {
            let hint = "Leave the header X-OJS-Tenant out.";
            let message = "Credentials are the operator's, and not a tenant's.";
            Err(OjsError::new(403, "forbidden", message, hint).into())
        }
    }
}
