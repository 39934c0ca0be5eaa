//! The keys of the configuration: those of clients, and those of other servers.

use super::everything;
use crate::caller::Peer;
use std::sync::{Arc, PoisonError, RwLock};
use turnstone_domain::digest;
use turnstone_domain::principal::{Principal, Role};
use turnstone_telemetry::Secret;

/// Characters of a configured key's digest in the name of its principal.
const SHOWN: usize = 8;

/// The keys of the configuration. Clones share them: after one of them renews the keys, all have the new ones.
#[derive(Clone, Default)]
pub struct ConfiguredKeys(Arc<RwLock<Arc<KeysInForce>>>);

/// Keys by their digest, each with its principal.
#[derive(Default)]
pub(crate) struct KeysInForce {
    pub(super) clients: Vec<(String, Arc<Principal>)>,
    pub(super) peers: Vec<(String, Arc<Peer>, Arc<Principal>)>,
}

impl std::fmt::Debug for ConfiguredKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ConfiguredKeys(***)")
    }
}

impl ConfiguredKeys {
    /// Returns the keys of these clients and other servers.
    #[must_use]
    pub fn new(clients: &[Secret], peers: &[Peer]) -> Self {
        let keys = Self::default();
        keys.renew(clients, peers);
        keys
    }

    /// Replaces all keys. A request with an old key is refused from now on.
    pub fn renew(&self, clients: &[Secret], peers: &[Peer]) {
        let keys = Arc::new(KeysInForce::of(clients, peers));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// Returns true if no key of a client is configured: then a client on this machine needs none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.in_force().clients.is_empty()
    }

    /// Returns the other server of this name.
    pub(crate) fn peer(&self, name: &str) -> Option<Arc<Peer>> {
        self.in_force().peers.iter().map(|(_, peer, _)| peer).find(|peer| peer.name == name).cloned()
    }

    pub(super) fn in_force(&self) -> Arc<KeysInForce> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeysInForce {
    fn of(clients: &[Secret], peers: &[Peer]) -> Self {
        let clients = clients.iter().map(|key| {
            let hash = digest::of_text(key.expose());
            let name = format!("configured-{}", hash.get(..SHOWN).unwrap_or(&hash));
            (hash, Arc::new(everything(name.clone(), Some(name))))
        });
        let peers = peers.iter().map(|peer| {
            let principal = Principal {
                name: peer.name.clone(),
                key: None,
                tenant: peer.tenant.clone(),
                roles: vec![Role::Viewer, Role::Submitter],
                acts_for: peer.users.clone(),
                email: None,
                identity: Some(format!("peer/{}", peer.name)),
            };
            (digest::of_text(peer.key.expose()), Arc::new(peer.clone()), Arc::new(principal))
        });
        Self { clients: clients.collect(), peers: peers.collect() }
    }
}
