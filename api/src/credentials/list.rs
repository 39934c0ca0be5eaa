//! `GET /credentials`: the stored credentials.

use super::{ShownCredential, whole_fleet};
use crate::api::Shared;
use crate::reply::{self, Answer};
use crate::request::Tenant;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// Credentials by owner, tool and header.
#[derive(Serialize, ToSchema)]
pub(crate) struct CredentialList {
    /// By owner, tool and header.
    pub credentials: Vec<ShownCredential>,
}

/// Lists the credentials, without the secrets.
#[utoipa::path(
    get, path = "/credentials", operation_id = "list_credentials", tag = "credentials",
    security(("fleet" = ["operator"])),
    responses((status = 200, description = "The credentials.", body = CredentialList)),
)]
pub(crate) async fn list(State(app): State<Shared>, tenant: Tenant) -> Answer {
    whole_fleet(&tenant)?;
    let listed = app.api.store.credentials.listed().await?;
    let shown = listed.into_iter().map(|one| ShownCredential {
        owner: one.owner.to_string(),
        tool: one.tool,
        header: one.header,
        form: one.form,
        updated_at: one.updated_at.to_rfc3339(),
    });
    Ok(reply::ok(&CredentialList { credentials: shown.collect() }))
}
