//! Credentials: the writes.

use super::super::rows::CredentialRow;
use super::super::session::{Args, Session};
use super::super::statement::Writes;
use crate::{StoreError, sql};
use turnstone_domain::agent::credential::{Content, Credential, Owner};

/// Keeps a credential in place of the one before.
pub(in super::super) async fn keep(session: &mut Session, one: &Credential) -> Result<(), StoreError> {
    let (Content::Reference(content) | Content::Value(content)) = &one.content;
    let row = CredentialRow {
        kind: one.owner.kind().to_owned(),
        subject: one.owner.subject().to_owned(),
        tool: one.tool.clone(),
        header: one.header.clone(),
        prefix: one.prefix.clone(),
        form: one.content.form().to_owned(),
        content: content.clone(),
        updated_at: one.updated_at,
    };
    let mut writes = Writes::default();
    writes.insert_over("keep a credential", vec![row]);
    writes.run(session).await
}

/// Removes the credentials of a tool, or one of them; returns whether there were any.
pub(in super::super) async fn forget(
    session: &mut Session,
    owner: &Owner,
    tool: &str,
    header: Option<&str>,
) -> Result<bool, StoreError> {
    // The empty text is no header's name: it means all of them.
    let values =
        [owner.kind().into(), owner.subject().into(), tool.into(), header.unwrap_or_default().into()];
    Ok(session.execute("forget credentials", &sql::DELETE_CREDENTIALS, Args::Values(&values)).await? > 0)
}
