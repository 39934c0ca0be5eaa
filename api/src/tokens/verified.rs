//! Tokens that were verified lately, so that a request with a known token costs no signature.

use crate::principals::RequestRate;
use crate::reply::Failure;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use turnstone_domain::Timestamp;
use turnstone_domain::principal::Principal;

/// The most tokens that are kept.
const TOKENS: usize = 10_000;

/// A token that was verified.
pub(super) struct VerifiedToken {
    /// The place of its issuer in the configuration.
    pub(super) issuer: usize,
    /// The version of the issuer's keys that verified it.
    pub(super) keys_version: u64,
    pub(super) principal: Arc<Principal>,
    /// From then on it is refused.
    pub(super) ends_at: Timestamp,
    /// Shared by all tokens of the principal.
    pub(super) rate: Option<Arc<RequestRate>>,
}

impl VerifiedToken {
    /// Counts a request under the rate of its principal.
    ///
    /// # Errors
    /// 429 above the rate.
    pub(super) fn admit(&self, now: Timestamp) -> Result<(), Failure> {
        self.rate.as_ref().map_or(Ok(()), |rate| rate.admit(now))
    }
}

/// The tokens, by their SHA-256, and the rates of their principals.
#[derive(Default)]
pub(super) struct VerifiedTokens {
    tokens: RwLock<HashMap<String, Arc<VerifiedToken>>>,
    rates: Mutex<HashMap<String, Arc<RequestRate>>>,
}

impl VerifiedTokens {
    /// Returns a token that has not ended.
    pub(super) fn find(&self, hash: &str, now: Timestamp) -> Option<Arc<VerifiedToken>> {
        let tokens = self.tokens.read().unwrap_or_else(PoisonError::into_inner);
        tokens.get(hash).filter(|token| now < token.ends_at).cloned()
    }

    /// Keeps a token. Above the limit, tokens that have ended are forgotten, and then all.
    pub(super) fn keep(&self, hash: &str, token: VerifiedToken, now: Timestamp) -> Arc<VerifiedToken> {
        let token = Arc::new(token);
        let mut tokens = self.tokens.write().unwrap_or_else(PoisonError::into_inner);
        if tokens.len() >= TOKENS {
            tokens.retain(|_, kept| now < kept.ends_at);
        }
        if tokens.len() >= TOKENS {
            tokens.clear();
        }
        tokens.insert(hash.to_owned(), Arc::clone(&token));
        token
    }

    /// Returns the rate of a principal. Above the limit, the rates that would let a burst pass are forgotten.
    pub(super) fn rate(&self, principal: &Principal, per_minute: i64, now: Timestamp) -> Arc<RequestRate> {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        if rates.len() >= TOKENS {
            rates.retain(|_, rate| !rate.is_unused(now));
        }
        let name = principal.identity.clone().unwrap_or_default();
        Arc::clone(rates.entry(name).or_insert_with(|| Arc::new(RequestRate::new(per_minute))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str, ends_at: i64) -> VerifiedToken {
        let principal = Principal {
            name: name.to_owned(),
            key: None,
            tenant: None,
            roles: Vec::new(),
            acts_for: Vec::new(),
            email: None,
            identity: Some(format!("{name} via corp")),
        };
        let (principal, ends_at) = (Arc::new(principal), Timestamp(ends_at));
        VerifiedToken { issuer: 0, keys_version: 1, principal, ends_at, rate: None }
    }

    #[test]
    fn ended_tokens_are_forgotten_first() {
        let kept = VerifiedTokens::default();
        for number in 0..TOKENS {
            let ends_at = if number == 0 { 100 } else { 10 };
            kept.keep(&number.to_string(), token("ann", ends_at), Timestamp(0));
        }
        assert!(kept.find("1", Timestamp(9)).is_some() && kept.find("1", Timestamp(10)).is_none());
        kept.keep("last", token("ben", 100), Timestamp(10));
        assert_eq!(kept.tokens.read().unwrap().len(), 2);
        assert!(kept.find("0", Timestamp(10)).is_some() && kept.find("last", Timestamp(10)).is_some());
    }

    #[test]
    fn the_tokens_of_a_principal_share_its_rate() {
        let kept = VerifiedTokens::default();
        let (one, other) = (token("ann", 1).principal, token("ann", 2).principal);
        let rates = [&one, &other].map(|principal| kept.rate(principal, 1, Timestamp(0)));
        assert!(rates[0].admit(Timestamp(0)).is_ok() && rates[1].admit(Timestamp(0)).is_err());
    }
}
