//! API keys of principals. The store holds the hash of a secret, never the secret.

use super::Engine;
use super::ops::keys as ops;
use super::rows::api_key;
use super::views::many;
use crate::{StoreError, sql};
use async_recursion::async_recursion as boxed;
use std::sync::Arc;
use turnstone_domain::Timestamp;
use turnstone_domain::principal::ApiKey;

/// The outcome of a new key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NewKeyOutcome {
    /// It is stored.
    Created,
    /// Another living key of the same tenant has the name.
    NameTaken,
    /// The tenant, or the fleet, has as many keys as it may have.
    TooMany {
        /// The most.
        most: usize,
    },
}

/// A new secret for a key.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// The key.
    pub id: String,
    /// The tenant whose key it has to be; `None` is any.
    pub tenant: Option<String>,
    /// The hash of the new secret.
    pub hash: String,
    /// The old secret is accepted until then.
    pub old_until: Timestamp,
    /// Now.
    pub at: Timestamp,
}

/// API keys of principals.
#[derive(Clone)]
pub struct Keys(pub(super) Arc<Engine>);

impl Keys {
    /// Stores a new key.
    #[boxed]
    pub async fn create(&self, key: ApiKey) -> Result<NewKeyOutcome, StoreError> {
        self.0.write(key, |tx, key| Box::pin(ops::create(&mut tx.session, key))).await
    }

    /// Returns every key, the oldest first.
    #[boxed]
    pub async fn all(&self) -> Result<Vec<ApiKey>, StoreError> {
        many(&self.0.readers, "read the keys", &sql::SELECT_API_KEYS, &[], api_key).await
    }

    /// Returns the keys that a secret of this hash opens, or opened before it was rotated.
    #[boxed]
    pub async fn by_hash(&self, hash: &str) -> Result<Vec<ApiKey>, StoreError> {
        let text = &sql::SELECT_API_KEYS_BY_HASH;
        many(&self.0.readers, "look for a key", text, &[hash.into()], api_key).await
    }

    /// Gives a living key a new secret. Returns the key; `None` when there is no living key of this id and tenant.
    #[boxed]
    pub async fn rotate(&self, rotation: Rotation) -> Result<Option<ApiKey>, StoreError> {
        self.0.write(rotation, |tx, rotation| Box::pin(ops::rotate(&mut tx.session, rotation))).await
    }

    /// Revokes a living key. Returns the key; `None` when there is no living key of this id and tenant.
    #[boxed]
    pub async fn revoke(
        &self,
        id: &str,
        tenant: Option<&str>,
        at: Timestamp,
    ) -> Result<Option<ApiKey>, StoreError> {
        let asked = (id.to_owned(), tenant.map(str::to_owned), at);
        self.0
            .write(asked, |tx, (id, tenant, at)| {
                Box::pin(ops::revoke(&mut tx.session, id, tenant.as_deref(), *at))
            })
            .await
    }

    /// Records when keys were last used.
    #[boxed]
    pub async fn used(&self, uses: Vec<(String, Timestamp)>) -> Result<(), StoreError> {
        self.0.write(uses, |tx, uses| Box::pin(ops::used(&mut tx.session, uses))).await
    }
}
