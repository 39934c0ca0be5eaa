//! Rings for the streams of this process.
//!
//! One listener at the doorbell wakes those who follow the stream that rings and nobody else, and one statement finds for all of
//! them what lost rings would have told: ten thousand readers ask the database no more often than one does.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use turnstone_store::{Ring, Store};

/// The doorbell may lose a ring; so often it is looked who has something new.
pub(crate) const POLL: Duration = Duration::from_secs(2);

/// Counts its rings, and wakes those who listen to it.
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

    /// How often it has rung.
    pub(crate) fn rings(&self) -> u64 {
        *self.rings.borrow()
    }

    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.rings.subscribe()
    }

    /// Whether a stream that it rings for was there, and is pruned.
    pub(crate) fn rang_for_the_last_time(&self) -> bool {
        self.gone.load(Ordering::Relaxed)
    }
}

/// Which bells ring for which streams.
pub(crate) struct Bells {
    store: Store,
    shutdown: CancellationToken,
    hung: Mutex<Hung>,
}

#[derive(Default)]
struct Hung {
    /// By the names that ring for them: engagements, and jobs that have none.
    streams: HashMap<String, Stream>,
    /// Whether somebody listens at the doorbell.
    watched: bool,
}

#[derive(Default)]
struct Stream {
    bells: Vec<Arc<Bell>>,
    /// How many events it had when it was looked at.
    newest: Option<i64>,
}

impl Stream {
    fn ring(&self) {
        self.bells.iter().for_each(|bell| bell.ring());
    }
}

/// Lets a bell ring for a stream as long as it is kept.
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

    /// Lets this bell ring for a stream from now on. Hang it before you look at the stream: then nothing is missed.
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
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.ring_all(),
                // The doorbell lives as long as the store does.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// Looks again and again which streams have more than was known; ends when there are none.
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

    /// The streams that somebody follows. `None` when nobody follows any: then nobody listens any more, either.
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
