//! Volatile hints between the parts of one process. Losing one is harmless: everybody polls as well.

use tokio::sync::broadcast;

/// What may have happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ring {
    /// There may be a job to claim.
    Available,
    /// The scheduler's next due time may be earlier than it thinks.
    Due,
    /// The lease with this token was ended from outside.
    Revoked(String),
    /// There are new events in this stream (an engagement's id, or a plain job's).
    Events(String),
}

/// The bell itself; clones ring and hear the same one.
#[derive(Clone, Debug)]
pub struct Doorbell {
    sender: broadcast::Sender<Ring>,
}

impl Default for Doorbell {
    fn default() -> Self {
        Self { sender: broadcast::channel(4096).0 }
    }
}

impl Doorbell {
    /// Rings. Nobody needs to listen.
    pub fn ring(&self, ring: Ring) {
        let _ = self.sender.send(ring);
    }

    /// Registers a listener. Register before querying, then nothing is missed; a listener that lags must query again.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Ring> {
        self.sender.subscribe()
    }
}
