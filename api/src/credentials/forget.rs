//! `DELETE /credentials/{owner}/{tool}?header=`: deletes credentials of a tool.

use super::place;
use crate::api::Shared;
use crate::audit::Operator;
use crate::reply::{self, Answer};
use crate::request::{Params, Segments, Tenant};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// Credentials that were deleted.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ForgottenCredentials {
    /// Their owner.
    pub owner: String,
    /// The tool, or `*`.
    pub tool: String,
    deleted: bool,
}

/// Deletes the credentials of an owner for a tool, or one header of them.
#[utoipa::path(
    delete, path = "/credentials/{owner}/{tool}", operation_id = "delete_credential", tag = "credentials",
    security(("fleet" = ["operator"])),
    params(
        ("owner" = String, Path, description = "user:ID, member:TENANT:ID or static:NAME.", example = "static:desk"),
        ("tool" = String, Path, description = "The tool, or `*`."),
        ("header" = Option<String>, Query, description = "One header; all of them unless said."),
    ),
    responses((status = 200, description = "They are forgotten.", body = ForgottenCredentials)),
)]
pub(crate) async fn forget(
    State(app): State<Shared>,
    Segments(owner, tool): Segments,
    tenant: Tenant,
    params: Params,
    operator: Operator,
) -> Answer {
    let (owner, tool) = place(&owner, &tool, &tenant)?;
    let header = params.text("header").map(str::to_ascii_lowercase);
    if !app.api.store.credentials.forget(&owner, &tool, header.as_deref()).await? {
        return Err(OjsError::not_found("credential", &format!("{owner}/{tool}")).into());
    }
    operator.did("credential.forget", &format!("{owner} {tool}"), "forgotten");
    Ok(reply::ok(&ForgottenCredentials { owner: owner.to_string(), tool, deleted: true }))
}
