//! Credentials: the writes.

use super::super::session::{Args, Session};
use crate::{StoreError, sql};
use turnstone_domain::agent::credential::{Content, Credential, Owner};

/// What is asked.
pub(in super::super) enum Request {
    Keep(Credential),
    Forget { owner: Owner, tool: String, header: Option<String> },
}

/// Does what is asked; returns whether something was written.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    request: &Request,
) -> Result<bool, StoreError> {
    let written = match request {
        Request::Keep(one) => {
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
            session.execute("keep a credential", &sql::INSERT_CREDENTIAL, Args::Values(&values)).await?
        }
        Request::Forget { owner, tool, header } => {
            // The empty text is no header's name: it stands for all of them.
            let header = header.as_deref().unwrap_or_default();
            let values = [owner.kind().into(), owner.subject().into(), tool.as_str().into(), header.into()];
            session.execute("forget credentials", &sql::DELETE_CREDENTIALS, Args::Values(&values)).await?
        }
    };
    Ok(written > 0)
}
