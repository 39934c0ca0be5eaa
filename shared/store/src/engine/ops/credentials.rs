//! Credentials: the writes.

use super::super::session::{Args, Session};
use crate::{StoreError, sql};
use turnstone_domain::agent::credential::{Content, Credential, Owner};

/// Keeps a credential in place of the one before.
pub(in super::super) async fn keep(session: &mut Session, one: &Credential) -> Result<(), StoreError> {
    let (Content::Reference(content) | Content::Value(content)) = &one.content;
    let values = [
        one.owner.kind().into(),
        one.owner.subject().into(),
        one.tool.as_str().into(),
        one.header.as_str().into(),
        one.prefix.as_str().into(),
        one.content.form().into(),
        content.as_str().into(),
        one.updated_at.0.into(),
    ];
    let (action, text) = ("keep a credential", &sql::INSERT_CREDENTIAL);
    session.execute(action, text, Args::Values(&values)).await.map(|_| ())
}

/// Removes the credentials of a tool, or one of them; returns whether there were any.
pub(in super::super) async fn forget(
    session: &mut Session,
    owner: &Owner,
    tool: &str,
    header: Option<&str>,
) -> Result<bool, StoreError> {
    // The empty text is no header's name: it stands for all of them.
    let values =
        [owner.kind().into(), owner.subject().into(), tool.into(), header.unwrap_or_default().into()];
    Ok(session.execute("forget credentials", &sql::DELETE_CREDENTIALS, Args::Values(&values)).await? > 0)
}
