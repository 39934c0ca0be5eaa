//! Rate limits that a whole fleet keeps to: per provider, model and tenant, requests and tokens per minute.
//!
//! A call asks to be admitted with the most tokens that it may use, and settles afterwards with what it did use. What
//! the provider itself asks for (`Retry-After`) holds every tenant's calls to that model.
//!
//! | kept by | when |
//! |---|---|
//! | [`crate::redis::RedisLimits`] | Redis is configured |
//! | the table `rate_limits` | it is not, and processes share a database |
//! | [`LocalLimits`] | one process is alone, or the keeper that it shares with others does not answer |
//!
//! All of them use the arithmetic of one bucket, which says how large a burst may be.

pub(crate) mod bucket;
pub(crate) mod database;
mod fleetwide;
mod local;

pub use fleetwide::FleetwideLimits;
pub use local::LocalLimits;

use crate::StoreError;
use async_trait::async_trait;
use turnstone_domain::{Timestamp, digest};

/// A longer name of a tenant is kept as its digest, so that no client can fill the store with names.
const LONGEST_TENANT: usize = 128;

/// How much may be used per minute. A limit without numbers keeps only to what the provider asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Limit {
    /// Calls per minute.
    pub requests_per_minute: Option<u64>,
    /// Tokens per minute, of prompts and answers together.
    pub tokens_per_minute: Option<u64>,
}

/// The model, and the tenant, whose calls are limited.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LimitKey {
    provider: String,
    model: String,
    tenant: String,
}

impl LimitKey {
    /// Calls to a model of a provider on behalf of a tenant; the tenant may be empty.
    #[must_use]
    pub fn new(provider: &str, model: &str, tenant: &str) -> Self {
        let tenant = if tenant.len() > LONGEST_TENANT { digest::of_text(tenant) } else { tenant.to_owned() };
        Self { provider: provider.to_owned(), model: model.to_owned(), tenant }
    }

    /// Where the bucket of this tenant is kept.
    pub(crate) fn bucket(&self) -> String {
        serde_json::json!([self.provider, self.model, self.tenant]).to_string()
    }

    /// Where it is kept what the provider asked for; it counts for every tenant.
    pub(crate) fn hold(&self) -> String {
        serde_json::json!([self.provider, self.model]).to_string()
    }
}

/// The right to one call: what was counted for it, and by whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The tokens that were counted.
    tokens: i64,
    /// True when this process counted for itself, because the shared store did not answer.
    alone: bool,
}

impl Grant {
    pub(crate) fn of(tokens: i64) -> Self {
        Self { tokens, alone: false }
    }

    /// The tokens to give back when so many were used; negative when more have to be taken.
    pub(crate) fn left(self, used: i64) -> i64 {
        self.tokens.saturating_sub(used)
    }
}

/// The decision about a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// At once; it is counted.
    Granted(Grant),
    /// Not now; nothing was counted.
    Wait {
        /// When it is worth asking again. Others may be faster.
        until: Timestamp,
        /// True when the provider itself asked all callers to wait.
        held: bool,
    },
}

/// Keeps rate limits.
#[async_trait]
pub trait RateLimits: Send + Sync + 'static {
    /// Asks for one call that may use up to `tokens` tokens.
    async fn admit(
        &self,
        key: &LimitKey,
        limit: &Limit,
        tokens: i64,
        now: Timestamp,
    ) -> Result<Admission, StoreError>;

    /// Says what an admitted call really used: the difference is given back, or taken.
    async fn settle(
        &self,
        key: &LimitKey,
        limit: &Limit,
        grant: Grant,
        used: i64,
        now: Timestamp,
    ) -> Result<(), StoreError>;

    /// Admits no call to this model before `until`, of any tenant. A longer hold stays as it is.
    async fn hold(&self, key: &LimitKey, until: Timestamp, now: Timestamp) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_be_mistaken_for_one_another() {
        let names: Vec<String> = [("a", "b/c", ""), ("a/b", "c", ""), ("a", "b", "c"), ("a", "b\",\"c", "")]
            .iter()
            .flat_map(|(provider, model, tenant)| {
                let key = LimitKey::new(provider, model, tenant);
                [key.bucket(), key.hold()]
            })
            .collect();
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name), "{name}");
        }
        assert!(LimitKey::new("p", "m", &"t".repeat(10_000)).bucket().len() < 200);
    }
}
