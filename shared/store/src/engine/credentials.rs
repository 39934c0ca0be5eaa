//! Credentials of users and of static identities (OAS-26, OAS-27).

use super::Engine;
use super::ops::credentials as ops;
use super::rows::{Fields, Inconsistency, get, wrong};
use super::session::Args;
use super::statement::decode_all;
use super::views::many;
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::Timestamp;
use turnstone_domain::agent::credential::{ANY_TOOL, Content, Credential, Owner};

/// A credential as lists show it: without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedCredential {
    /// Whose it is.
    pub owner: Owner,
    /// The tool, or `*`.
    pub tool: String,
    /// The header.
    pub header: String,
    /// `reference` or `value`.
    pub form: String,
    /// When it was set.
    pub updated_at: Timestamp,
}

fn owner(row: &impl Fields) -> Result<Owner, Inconsistency> {
    let kind: String = get(row, "kind")?;
    Owner::of(&kind, get::<String>(row, "subject")?)
        .ok_or_else(|| wrong("kind", format!("`{kind}` is no kind of owner")))
}

fn listed(row: &impl Fields) -> Result<ListedCredential, Inconsistency> {
    Ok(ListedCredential {
        owner: owner(row)?,
        tool: get(row, "tool")?,
        header: get(row, "header")?,
        form: get(row, "form")?,
        updated_at: get(row, "updated_at")?,
    })
}

fn credential(row: &impl Fields) -> Result<Credential, Inconsistency> {
    let (form, content): (String, String) = (get(row, "form")?, get(row, "content")?);
    Ok(Credential {
        owner: owner(row)?,
        tool: get(row, "tool")?,
        header: get(row, "header")?,
        prefix: get(row, "prefix")?,
        content: if form == "value" { Content::Value(content) } else { Content::Reference(content) },
        updated_at: get(row, "updated_at")?,
    })
}

/// Keeps credentials. Secrets leave it for a call and for nothing else.
#[derive(Clone)]
pub struct Credentials(pub(super) Arc<Engine>);

impl Credentials {
    /// Returns true when secrets are stored encrypted. Without encryption no secret may be given, only the name of
    /// its variable or file.
    pub fn seals(&self) -> bool {
        self.0.readers.seals()
    }

    /// Keeps a credential in place of the one for the same owner, tool and header.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when it holds a secret and nothing is encrypted.
    #[boxed]
    pub async fn keep(&self, credential: Credential) -> Result<(), StoreError> {
        if matches!(credential.content, Content::Value(_)) && !self.seals() {
            let why =
                "a secret is not stored in the clear: configure [encryption] key, or name the secret instead";
            return Err(StoreError::Unfit(why.to_owned()));
        }
        self.0.write(credential, |tx, one| Box::pin(ops::keep(&mut tx.session, one))).await
    }

    /// Forgets the credentials of an owner for a tool, or one header of them; returns whether there was any.
    #[boxed]
    pub async fn forget(&self, owner: &Owner, tool: &str, header: Option<&str>) -> Result<bool, StoreError> {
        let requested = (owner.clone(), tool.to_owned(), header.map(str::to_owned));
        self.0
            .write(requested, |tx, (owner, tool, header)| {
                Box::pin(ops::forget(&mut tx.session, owner, tool, header.as_deref()))
            })
            .await
    }

    /// All of them, by owner, tool and header.
    #[boxed]
    pub async fn listed(&self) -> Result<Vec<ListedCredential>, StoreError> {
        let (action, text) = ("list credentials", &sql::SELECT_CREDENTIALS);
        many(&self.0.readers, action, text, &[], listed).await
    }

    /// Those that a call of this tool is made with: what is kept for the tool goes before what is kept for every tool.
    #[boxed]
    pub async fn of_call(&self, owner: &Owner, tool: &str) -> Result<Vec<Credential>, StoreError> {
        let values = [owner.kind().into(), owner.subject().into(), tool.into(), ANY_TOOL.into()];
        let (action, text) = ("read credentials", &sql::SELECT_CREDENTIALS_OF_CALL);
        let mut found =
            decode_all(&self.0.readers.read(action, text, Args::Values(&values)).await?, credential)?;
        let own: Vec<String> =
            found.iter().filter(|one| one.tool == tool).map(|one| one.header.clone()).collect();
        found.retain(|one| one.tool == tool || !own.contains(&one.header));
        Ok(found)
    }
}
