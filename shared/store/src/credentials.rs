//! Credentials of users and of static identities (OAS-26, OAS-27).

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::Timestamp;
use turnstone_domain::agent::credential::{Credential, Owner};

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

/// Keeps credentials. Secrets leave it for a call and for nothing else.
#[async_trait]
pub trait Credentials: Send + Sync + 'static {
    /// Whether what is stored is encrypted: without that no secret may be given, only where one is.
    fn seals(&self) -> bool;

    /// Keeps a credential in place of the one for the same owner, tool and header.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] when it holds a secret and nothing is encrypted.
    async fn keep(&self, credential: Credential) -> Result<(), StoreError>;

    /// Forgets the credentials of an owner for a tool, or one header of them; returns whether there was any.
    async fn forget(&self, owner: &Owner, tool: &str, header: Option<&str>) -> Result<bool, StoreError>;

    /// All of them, by owner, tool and header.
    async fn listed(&self) -> Result<Vec<ListedCredential>, StoreError>;

    /// Those that a call of this tool is made with: what is kept for the tool goes before what is kept for every tool.
    async fn of_call(&self, owner: &Owner, tool: &str) -> Result<Vec<Credential>, StoreError>;
}
