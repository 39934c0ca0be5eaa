//! Volatile hints between the parts of a fleet. Losing one is harmless: everybody polls as well.

use crate::live::Live;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

/// Rings that may wait for a slow listener before it has to query again.
const KEPT: usize = 4096;

/// What may have happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ring {
    /// There may be a job to claim.
    Available,
    /// The scheduler's next due time may be earlier than it thinks.
    Due,
    /// The lease with this token was ended from outside.
    Revoked(String),
    /// The job of the lease with this token was paused, or one of its calls is to be made again.
    Asked(String),
    /// There are new events in this stream (an engagement's id, or a plain job's).
    Events(String),
}

/// The bell itself; clones ring and hear the same one.
///
/// It reaches the parts of this process. A relay carries what is rung here to other processes, and brings in what was
/// rung there; what came in is never carried out again.
#[derive(Clone, Debug)]
pub struct Doorbell {
    heard: broadcast::Sender<Ring>,
    rung: broadcast::Sender<Ring>,
    live: Live,
}

impl Default for Doorbell {
    fn default() -> Self {
        Self { heard: broadcast::channel(KEPT).0, rung: broadcast::channel(KEPT).0, live: Live::default() }
    }
}

impl Doorbell {
    /// Rings, here and wherever a relay carries it. Nobody needs to listen.
    pub fn ring(&self, ring: Ring) {
        let _ = self.rung.send(ring.clone());
        let _ = self.heard.send(ring);
    }

    /// Lets the parts of this process hear what was rung elsewhere.
    pub fn bring_in(&self, ring: Ring) {
        let _ = self.heard.send(ring);
    }

    /// A doorbell that does not keep this one alive: for a relay, which ends when nobody else uses the bell.
    pub(crate) fn downgrade(&self) -> WeakDoorbell {
        WeakDoorbell { heard: self.heard.downgrade() }
    }

    /// Registers a listener. Register before querying, then nothing is missed; a listener that lags must query again.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Ring> {
        self.heard.subscribe()
    }

    /// Where models are heard while they speak: as volatile as a ring, and carried by the same relays.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// What is rung in this process, for a relay.
    #[must_use]
    pub fn outgoing(&self) -> broadcast::Receiver<Ring> {
        self.rung.subscribe()
    }
}

/// See [`Doorbell::downgrade`].
#[derive(Clone, Debug)]
pub(crate) struct WeakDoorbell {
    heard: broadcast::WeakSender<Ring>,
}

impl WeakDoorbell {
    /// Lets the parts of this process hear what was rung elsewhere.
    pub(crate) fn bring_in(&self, ring: Ring) {
        if let Some(heard) = self.heard.upgrade() {
            let _ = heard.send(ring);
        }
    }
}
