//! The stored keys, in memory. They are read again while they are used: a key that is revoked by another process is
//! refused within a second. A request with a key that was read lately waits for no read. An unknown key is looked up in the
//! store, so that a key opens every process as soon as one has created it.

use super::rate::RequestRate;
use crate::outage::store_failed;
use crate::reply::Failure;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnstone_domain::principal::{ApiKey, Principal};
use turnstone_domain::{Clock, Timestamp};
use turnstone_store::{Keys, StoreError};

/// Keys this old are read again, beside the request.
const FRESH: Duration = Duration::from_millis(400);
/// Keys this old are read again before they count.
const STALE: Duration = Duration::from_millis(900);
/// An unknown key of a client that may not look keys up makes the keys be read again at most this often.
const UNKNOWN: Duration = Duration::from_millis(100);
/// The use of a key is recorded to the minute.
const MINUTE_MS: i64 = 60_000;

/// A stored key, by one of its secrets.
pub(crate) struct Held {
    pub(crate) principal: Arc<Principal>,
    key: ApiKey,
    /// Cancelled when the secret no longer opens the key.
    pub(crate) over: CancellationToken,
    /// The minute of the last use that was recorded.
    used: AtomicI64,
    rate: Option<RequestRate>,
}

#[derive(Default)]
struct KnownKeys {
    by_hash: HashMap<String, Arc<Held>>,
    read_at: Option<Instant>,
}

impl KnownKeys {
    fn is_older_than(&self, age: Duration) -> bool {
        self.read_at.is_none_or(|at| at.elapsed() >= age)
    }
}

/// The stored keys.
pub(crate) struct Keyring {
    keys: Keys,
    clock: Arc<dyn Clock>,
    known: RwLock<Arc<KnownKeys>>,
    reading: tokio::sync::Mutex<()>,
    uses: Mutex<HashMap<String, Timestamp>>,
    /// Streams that end when their key does.
    streams: AtomicUsize,
    /// True while a task reads the keys for them.
    watching: AtomicBool,
    shutdown: CancellationToken,
}

impl Keyring {
    pub(crate) fn new(keys: Keys, clock: Arc<dyn Clock>, shutdown: CancellationToken) -> Self {
        Self {
            keys,
            clock,
            known: RwLock::default(),
            reading: tokio::sync::Mutex::default(),
            uses: Mutex::default(),
            streams: AtomicUsize::new(0),
            watching: AtomicBool::new(false),
            shutdown,
        }
    }

    /// Returns the key that a secret of this hash opens. A key that is not in memory is looked up in the store if
    /// `looks_up` is true.
    ///
    /// # Errors
    /// 429 above the rate of the key; the error of the store when it has to be read.
    pub(crate) async fn find(
        self: &Arc<Self>,
        hash: &str,
        looks_up: bool,
    ) -> Result<Option<Arc<Held>>, Failure> {
        let (known, now) = (self.known(), self.clock.now());
        let mut held = known.by_hash.get(hash).cloned();
        if held.is_none() && looks_up {
            if self.is_new(hash, now).await? {
                self.read(|known| !known.by_hash.contains_key(hash)).await?;
                held = self.known().by_hash.get(hash).cloned();
            }
        } else {
            let age = if held.is_some() { STALE } else { UNKNOWN };
            if known.is_older_than(age) {
                self.read(|known| known.is_older_than(age)).await?;
                held = self.known().by_hash.get(hash).cloned();
            } else if known.is_older_than(FRESH) {
                let ring = Arc::clone(self);
                tokio::spawn(async move { ring.read_beside().await });
            }
        }
        let Some(held) = held.filter(|held| held.key.accepts(hash, now)) else { return Ok(None) };
        if let Some(rate) = &held.rate {
            rate.admit(now)?;
        }
        self.note_use(&held, now);
        Ok(Some(held))
    }

    /// Returns true if a secret of this hash opens a stored key.
    async fn is_new(&self, hash: &str, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.keys.by_hash(hash).await?.iter().any(|key| key.accepts(hash, now)))
    }

    /// Reads the keys now, after this process has changed them.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        self.read(|_| true).await
    }

    fn known(&self) -> Arc<KnownKeys> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the keys if that is still due when no other task reads them.
    async fn read(&self, is_due: impl FnOnce(&KnownKeys) -> bool) -> Result<(), StoreError> {
        let _reading = self.reading.lock().await;
        let before = self.known();
        if !is_due(&before) {
            return Ok(());
        }
        let read_at = Instant::now();
        let (keys, now) = (self.keys.all().await?, self.clock.now());
        let mut by_hash = HashMap::with_capacity(keys.len());
        for key in keys {
            let old = key.old_hash.as_ref().map(|(hash, _)| hash.clone());
            for hash in std::iter::once(key.hash.clone()).chain(old) {
                if key.accepts(&hash, now) {
                    let held = Held::of(&key, before.by_hash.get(&hash));
                    by_hash.insert(hash, held);
                }
            }
        }
        for (_, held) in before.by_hash.iter().filter(|(hash, _)| !by_hash.contains_key(*hash)) {
            held.over.cancel();
        }
        let known = Arc::new(KnownKeys { by_hash, read_at: Some(read_at) });
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    /// Reads the keys for later requests, and records their uses.
    async fn read_beside(&self) {
        if self.reading.try_lock().is_err() {
            return;
        }
        if let Err(error) = self.read(|known| known.is_older_than(FRESH)).await {
            store_failed!(warn, error, "the keys of principals could not be read");
        }
        let uses = std::mem::take(&mut *self.uses.lock().unwrap_or_else(PoisonError::into_inner));
        if !uses.is_empty()
            && let Err(error) = self.keys.used(uses.into_iter().collect()).await
        {
            store_failed!(warn, error, "the use of keys could not be recorded");
        }
    }

    fn note_use(&self, held: &Held, now: Timestamp) {
        let minute = now.0.div_euclid(MINUTE_MS) * MINUTE_MS;
        if held.used.fetch_max(minute, Ordering::Relaxed) < minute {
            let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
            uses.insert(held.key.id.clone(), Timestamp(minute));
        }
    }

    /// Reads the keys while there are streams, so that a stream ends when its key does.
    pub(crate) fn watch(self: &Arc<Self>) -> Watched {
        self.streams.fetch_add(1, Ordering::Relaxed);
        if !self.watching.swap(true, Ordering::AcqRel) {
            let ring = Arc::clone(self);
            tokio::spawn(async move {
                loop {
                    while ring.streams.load(Ordering::Acquire) > 0 && !ring.shutdown.is_cancelled() {
                        tokio::time::sleep(FRESH).await;
                        ring.read_beside().await;
                    }
                    ring.watching.store(false, Ordering::Release);
                    // A stream may have begun in between.
                    let is_done = ring.streams.load(Ordering::Acquire) == 0 || ring.shutdown.is_cancelled();
                    if is_done || ring.watching.swap(true, Ordering::AcqRel) {
                        return;
                    }
                }
            });
        }
        Watched(Arc::clone(self))
    }
}

/// A stream that ends when its key does.
pub(crate) struct Watched(Arc<Keyring>);

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Held {
    /// Keeps what was known of the same secret.
    fn of(key: &ApiKey, before: Option<&Arc<Self>>) -> Arc<Self> {
        let key = ApiKey { last_used_at: None, ..key.clone() };
        if let Some(before) = before.filter(|before| before.key == key) {
            return Arc::clone(before);
        }
        let counted = before.and_then(|before| before.rate.as_ref());
        let rate = key
            .rate_per_minute
            .map(|rate| counted.map_or_else(|| RequestRate::new(rate), |old| old.with(rate)));
        Arc::new(Self {
            principal: Arc::new(key.principal()),
            key,
            over: before.map_or_else(CancellationToken::new, |before| before.over.clone()),
            used: AtomicI64::new(i64::MIN),
            rate,
        })
    }
}
