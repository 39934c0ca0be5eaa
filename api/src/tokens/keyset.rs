//! The public keys of one issuer. They are read again while they are used, and when a token names an unknown key.

use super::fetch::KeySource;
use jsonwebtoken::jwk::{Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey};
use serde::Deserialize as _;
use serde_json::Value;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use turnstone_domain::{Timestamp, digest};

/// Keys this old are read again, beside the request.
const FRESH_MS: i64 = 5 * 60_000;
/// Keys this old no longer count: a key that the issuer withdrew may be among them.
const STALE_MS: i64 = 60 * 60_000;
/// The keys are read at most this often because of a token with an unknown key, or after a failure.
pub(super) const AGAIN_MS: i64 = 30_000;
/// The most keys of an issuer.
const KEYS: usize = 100;

/// A public key that verifies signatures.
#[derive(Clone, Debug)]
pub(super) struct PublicTokenKey {
    id: Option<String>,
    /// The only algorithm that the issuer allows for it, if the issuer names one.
    only: Option<KeyAlgorithm>,
    pub(super) key: DecodingKey,
}

#[derive(Clone, Default)]
struct KnownKeyset {
    keys: Vec<PublicTokenKey>,
    /// Of the document. Another digest is another version.
    digest: String,
    version: u64,
    read_at: Option<Timestamp>,
}

/// The public keys of an issuer.
pub(super) struct Keyset {
    source: KeySource,
    known: RwLock<Arc<KnownKeyset>>,
    reading: tokio::sync::Mutex<()>,
    /// When the keys were last asked for, in milliseconds since the epoch.
    tried_at: AtomicI64,
    /// Why the last attempt failed.
    failure: Mutex<String>,
}

impl Keyset {
    pub(super) fn new(source: KeySource) -> Self {
        Self {
            source,
            known: RwLock::default(),
            reading: tokio::sync::Mutex::default(),
            tried_at: AtomicI64::new(i64::MIN),
            failure: Mutex::default(),
        }
    }

    /// Returns the version of the keys; `None` when they have to be read first.
    pub(super) async fn version(self: &Arc<Self>, now: Timestamp) -> Option<u64> {
        self.usable(now).await.ok().map(|known| known.version)
    }

    /// Returns the key of a token for its algorithm, and the version of the keys. A token without the id of its key is
    /// accepted while a single key fits.
    ///
    /// # Errors
    /// A sentence that says why the keys cannot be read.
    pub(super) async fn find(
        self: &Arc<Self>,
        id: Option<&str>,
        algorithm: Algorithm,
        now: Timestamp,
    ) -> Result<Option<(PublicTokenKey, u64)>, String> {
        let known = self.usable(now).await?;
        if let Some(key) = known.find(id, algorithm) {
            return Ok(Some((key.clone(), known.version)));
        }
        if !self.may_try(now) {
            return Ok(None);
        }
        // A failure leaves the keys as they are: the token's key is not among them.
        let _ = self.read(known.version, now).await;
        let known = self.known();
        Ok(known.find(id, algorithm).map(|key| (key.clone(), known.version)))
    }

    /// Returns keys that are not stale.
    async fn usable(self: &Arc<Self>, now: Timestamp) -> Result<Arc<KnownKeyset>, String> {
        let known = self.known();
        if known.is_younger_than(STALE_MS, now) {
            if !known.is_younger_than(FRESH_MS, now) && self.may_try(now) {
                let (keys, version) = (Arc::clone(self), known.version);
                tokio::spawn(async move { keys.read(version, now).await });
            }
            return Ok(known);
        }
        if !self.may_try(now) && self.reading.try_lock().is_ok() {
            return Err(self.last_failure());
        }
        self.read(known.version, now).await?;
        Ok(self.known())
    }

    fn known(&self) -> Arc<KnownKeyset> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn last_failure(&self) -> String {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns true if the keys were not asked for lately.
    fn may_try(&self, now: Timestamp) -> bool {
        let tried_at = self.tried_at.load(Ordering::Relaxed);
        tried_at == i64::MIN || !(0..AGAIN_MS).contains(&now.since(Timestamp(tried_at)))
    }

    /// Reads the keys in a task of its own, so that a client that leaves does not end it. Requests that wait for the same
    /// keys share one attempt.
    ///
    /// # Errors
    /// A sentence that says why they cannot be read.
    async fn read(self: &Arc<Self>, version: u64, now: Timestamp) -> Result<(), String> {
        let keys = Arc::clone(self);
        let reading = tokio::spawn(async move { keys.read_once(version, now).await });
        reading.await.unwrap_or_else(|_| Err("the attempt was ended".to_owned()))
    }

    async fn read_once(&self, version: u64, now: Timestamp) -> Result<(), String> {
        let _reading = self.reading.lock().await;
        if self.known().version != version {
            return Ok(());
        }
        if !self.may_try(now) {
            let is_known = self.known().is_younger_than(STALE_MS, now);
            return if is_known { Ok(()) } else { Err(self.last_failure()) };
        }
        self.tried_at.store(now.0, Ordering::Relaxed);
        let read = self.source.key_set().await.and_then(|document| self.known().followed_by(&document, now));
        match read {
            Ok(known) => {
                *self.known.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(known);
                Ok(())
            }
            Err(why) => {
                tracing::warn!(%why, "the public keys of an issuer could not be read");
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&why);
                Err(why)
            }
        }
    }
}

/// Returns the number of keys of a document that fit one of these algorithms.
///
/// # Errors
/// A sentence that says why it is no key set.
pub(super) fn usable(document: &Value, algorithms: &[Algorithm]) -> Result<usize, String> {
    let known = KnownKeyset::default().followed_by(document, Timestamp(0))?;
    let fits = |key: &&PublicTokenKey| algorithms.iter().any(|algorithm| key.fits(*algorithm));
    Ok(known.keys.iter().filter(fits).count())
}

impl KnownKeyset {
    fn is_younger_than(&self, age_ms: i64, now: Timestamp) -> bool {
        self.read_at.is_some_and(|at| (0..age_ms).contains(&now.since(at)))
    }

    /// Returns the keys of a newer document. Keys of other kinds, and for other uses, are left out.
    fn followed_by(&self, document: &Value, now: Timestamp) -> Result<Self, String> {
        let listed = document["keys"].as_array().ok_or("its key set has no keys")?;
        if listed.len() > KEYS {
            return Err(format!("its key set has more than {KEYS} keys"));
        }
        let digest = digest::of_json(document);
        if digest == self.digest {
            return Ok(Self { read_at: Some(now), ..self.clone() });
        }
        let keys = listed.iter().filter_map(PublicTokenKey::read).collect();
        Ok(Self { keys, digest, version: self.version + 1, read_at: Some(now) })
    }

    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&PublicTokenKey> {
        let mut fitting = self.keys.iter().filter(|key| key.fits(algorithm));
        match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        }
    }
}

impl PublicTokenKey {
    fn read(listed: &Value) -> Option<Self> {
        let key = Jwk::deserialize(listed).ok()?;
        let signs = matches!(key.common.public_key_use, None | Some(PublicKeyUse::Signature));
        let decoding = DecodingKey::from_jwk(&key).ok()?;
        // A symmetric key would let every reader of the key set sign tokens.
        (signs && decoding.family() != AlgorithmFamily::Hmac).then_some(Self {
            id: key.common.key_id,
            only: key.common.key_algorithm,
            key: decoding,
        })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        self.key.family() == algorithm.family()
            && self.only.is_none_or(|only| only == KeyAlgorithm::from(algorithm))
    }
}
