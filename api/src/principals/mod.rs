//! The principals that this server knows: stored keys, the keys of the configuration, tokens of issuers, peers, and
//! clients on this machine.

mod body;
mod configured;
mod failed_logins;
mod keyring;
mod rate;
pub(crate) mod work;

pub(crate) use body::until;
pub use configured::ConfiguredKeys;
pub(crate) use failed_logins::FailedLogins;
pub(crate) use keyring::{Held, Keyring};
pub(crate) use rate::RequestRate;

use crate::caller::{Caller, Peer};
use crate::reply::Failure;
use crate::tokens::{Issuer, Tokens, is_token};
use std::net::IpAddr;
use std::sync::Arc;
use turnstone_domain::principal::{ANYONE, Principal, Role, same};
use turnstone_domain::{Clock, Timestamp, digest};
use turnstone_ojs::OjsError;

/// The beginning of every stored key, by which scanners of leaked secrets find it.
pub(crate) const PREFIX: &str = "tsk_";

/// The principal of a request, and its source.
pub(crate) struct FoundPrincipal {
    pub(crate) principal: Arc<Principal>,
    /// Set for another server.
    pub(crate) peer: Option<Arc<Peer>>,
    /// Set for a principal that a stream may outlive.
    pub(crate) end: Option<CredentialEnd>,
}

/// The end of a key or a token, which ends its streams.
pub(crate) enum CredentialEnd {
    /// A stored key, which may be revoked, and may expire.
    Key(Arc<Held>),
    /// A token, which expires.
    Token(Timestamp),
}

/// The principals of this server.
pub(crate) struct Principals {
    configured: ConfiguredKeys,
    local: Arc<Principal>,
    pub(crate) keyring: Arc<Keyring>,
    tokens: Tokens,
    failed_logins: FailedLogins,
    clock: Arc<dyn Clock>,
}

impl Principals {
    pub(crate) fn new(
        configured: ConfiguredKeys,
        issuers: &[Issuer],
        keyring: Keyring,
        failed_logins: FailedLogins,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            configured,
            local: Arc::new(everything("local".to_owned(), None)),
            keyring: Arc::new(keyring),
            tokens: Tokens::new(issuers, Arc::clone(&clock)),
            failed_logins,
            clock,
        }
    }

    /// Returns true if a client on this machine needs no key.
    pub(crate) fn is_keyless(&self) -> bool {
        self.configured.is_empty() && self.tokens.is_empty()
    }

    /// Returns the principal of a presented key, or of a request without one. `from` is the client's address.
    ///
    /// # Errors
    /// 401 when the key opens nothing, and 429 when too many of this address opened nothing; those of [`Tokens::find`];
    /// the error of the store.
    pub(crate) async fn find(
        &self,
        presented: Option<&str>,
        from: Option<IpAddr>,
    ) -> Result<FoundPrincipal, Failure> {
        let found = self.open(presented, from).await;
        found.map_err(|failure| match (presented, failure.0.status) {
            (Some(_), 401) => self.failed_logins.count(from, self.clock.now(), failure),
            _ => failure,
        })
    }

    async fn open(&self, presented: Option<&str>, from: Option<IpAddr>) -> Result<FoundPrincipal, Failure> {
        let local = || FoundPrincipal { principal: Arc::clone(&self.local), peer: None, end: None };
        let Some(key) = presented else {
            return if self.is_keyless() { Ok(local()) } else { Err(OjsError::unauthorized().into()) };
        };
        let (hash, keys) = (digest::of_text(key), self.configured.in_force());
        // Every key is compared, and digests are compared in full, so the time reveals nothing about any key.
        let peer =
            keys.peers.iter().fold(None, |found, one| if same(&hash, &one.0) { Some(one) } else { found });
        if let Some((_, peer, principal)) = peer {
            return Ok(FoundPrincipal {
                principal: Arc::clone(principal),
                peer: Some(Arc::clone(peer)),
                end: None,
            });
        }
        let configured = keys
            .clients
            .iter()
            .fold(None, |found, one| if same(&hash, &one.0) { Some(&one.1) } else { found });
        if let Some(principal) = configured {
            return Ok(FoundPrincipal { principal: Arc::clone(principal), peer: None, end: None });
        }
        if key.starts_with(PREFIX) {
            // Above the limit, unknown keys cost the store nothing, and every key that is in memory opens.
            let looks_up = !self.failed_logins.is_exhausted(from, self.clock.now());
            let held = self.keyring.find(&hash, looks_up).await?.ok_or_else(OjsError::unauthorized)?;
            return Ok(FoundPrincipal {
                principal: Arc::clone(&held.principal),
                peer: None,
                end: Some(CredentialEnd::Key(held)),
            });
        }
        if !self.tokens.is_empty() && is_token(key) {
            let found = self.tokens.find(key, &hash).await?;
            let end = Some(CredentialEnd::Token(found.ends_at));
            return Ok(FoundPrincipal { principal: found.principal, peer: None, end });
        }
        // Many clients send some key always, also to a server that needs none.
        if self.is_keyless() { Ok(local()) } else { Err(OjsError::unauthorized().into()) }
    }
}

impl FoundPrincipal {
    /// Returns the caller.
    pub(crate) fn caller(&self) -> Caller {
        self.peer.as_ref().map_or(Caller::Client, |peer| Caller::Peer(peer.name.clone()))
    }
}

/// Returns a principal of the fleet that may do everything, for everyone.
fn everything(name: String, identity: Option<String>) -> Principal {
    Principal {
        name,
        key: None,
        tenant: None,
        roles: vec![Role::Admin],
        acts_for: vec![ANYONE.to_owned()],
        email: None,
        identity,
    }
}
