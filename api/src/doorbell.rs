//! Notifications for the streams of this process.
//!
//! One listener at the doorbell wakes only the followers of the stream that has news. One statement finds the streams
//! whose notifications were lost, for all followers. So ten thousand readers query the database no more often than one
//! does.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use turnstone_store::{Ring, Store};

/// The interval of polling for streams with news, because the doorbell may lose a notification.
pub(crate) const POLL: Duration = Duration::from_secs(2);

/// Counts its notifications, and wakes its listeners.
#[derive(Debug)]
pub(crate) struct Bell {
    rings: watch::Sender<u64>,
    gone: AtomicBool,
}

impl Bell {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { rings: watch::channel(0).0, gone: AtomicBool::new(false) })
    }

    pub(crate) fn ring(&self) {
        self.rings.send_modify(|rings| *rings += 1);
    }

    /// Returns the number of notifications so far.
    pub(crate) fn rings(&self) -> u64 {
        *self.rings.borrow()
    }

    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.rings.subscribe()
    }

    /// Returns true if a stream that it belongs to existed and is pruned.
    pub(crate) fn rang_for_the_last_time(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

/// The listeners of each stream.
pub(crate) struct Bells {
    store: Store,
    shutdown: CancellationToken,
    hung: Mutex<Hung>,
}

#[derive(Default)]
struct Hung {
    /// By name: the engagement, or the job without one.
    streams: HashMap<String, Stream>,
    /// True if the doorbell has a listener.
    watched: bool,
}

#[derive(Default)]
struct Stream {
    bells: Vec<Arc<Bell>>,
    /// The number of its events at the last query.
    newest: Option<i64>,
}

impl Stream {
    fn ring(&self) {
        self.bells.iter().for_each(|bell| bell.ring());
    }
}

/// Connects a bell with a stream as long as it is kept.
pub(crate) struct Hook {
    bells: Arc<Bells>,
    name: String,
    bell: Arc<Bell>,
}

impl Drop for Hook {
    fn drop(&mut self) {
        let mut hung = self.bells.hung();
        let Some(stream) = hung.streams.get_mut(&self.name) else { return };
        if let Some(at) = stream.bells.iter().position(|bell| Arc::ptr_eq(bell, &self.bell)) {
            stream.bells.swap_remove(at);
        }
        if stream.bells.is_empty() {
            hung.streams.remove(&self.name);
        }
    }
}

impl Bells {
    pub(crate) fn new(store: Store, shutdown: CancellationToken) -> Arc<Self> {
        Arc::new(Self { store, shutdown, hung: Mutex::default() })
    }

    fn hung(&self) -> MutexGuard<'_, Hung> {
        self.hung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects this bell with a stream from now on. Call it before you read the stream: then nothing is missed.
    pub(crate) fn hang(self: &Arc<Self>, name: &str, bell: &Arc<Bell>) -> Hook {
        let mut hung = self.hung();
        hung.streams.entry(name.to_owned()).or_default().bells.push(Arc::clone(bell));
        if !std::mem::replace(&mut hung.watched, true) {
            tokio::spawn(watch_over(Arc::clone(self), self.store.doorbell.listen()));
        }
        Hook { bells: Arc::clone(self), name: name.to_owned(), bell: Arc::clone(bell) }
    }

    fn ring(&self, name: &str) {
        if let Some(stream) = self.hung().streams.get(name) {
            stream.ring();
        }
    }

    fn ring_all(&self) {
        self.hung().streams.values().for_each(Stream::ring);
    }

    async fn hear(&self, mut rings: Receiver<Ring>) {
        loop {
            match rings.recv().await {
                Ok(Ring::Events(name)) => self.ring(&name),
                Ok(Ring::AllEvents) | Err(RecvError::Lagged(_)) => self.ring_all(),
                Ok(_) => {}
                // The doorbell lives as long as the store does.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// Queries repeatedly which streams have news; ends when there are none.
    async fn look(&self) {
        let mut blind = false;
        loop {
            tokio::time::sleep(POLL).await;
            let Some(names) = self.names() else { return };
            match self.store.views.newest_events(names).await {
                Ok(newest) => self.found(newest, std::mem::take(&mut blind)),
                Err(error) => {
                    if !std::mem::replace(&mut blind, true) {
                        let error = turnstone_telemetry::redact(&error.to_string());
                        tracing::warn!(error, "it could not be read how far streams of events are");
                    }
                }
            }
        }
    }

    /// Returns the streams that are followed. `None` when there are none: then listening ends, too.
    fn names(&self) -> Option<Vec<String>> {
        let mut hung = self.hung();
        hung.watched = !hung.streams.is_empty();
        hung.watched.then(|| hung.streams.keys().cloned().collect())
    }

    fn found(&self, newest: Vec<(String, i64)>, all: bool) {
        let newest: HashMap<String, i64> = newest.into_iter().collect();
        for (name, stream) in &mut self.hung().streams {
            let found = newest.get(name).copied();
            let before = std::mem::replace(&mut stream.newest, found);
            if before.is_some() && found.is_none() {
                stream.bells.iter().for_each(|bell| bell.gone.store(true, Ordering::Relaxed));
            }
            if all || before != found {
                stream.ring();
            }
        }
    }
}

async fn watch_over(bells: Arc<Bells>, rings: Receiver<Ring>) {
    tokio::select! {
        () = bells.shutdown.cancelled() => {}
        () = bells.hear(rings) => {}
        () = bells.look() => {}
    }
}
