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
    heard: Ears,
    rung: broadcast::Sender<Ring>,
    live: Live,
}

/// Who is notified of a ring. Events are most of all rings, and only readers of events wait for them.
#[derive(Clone, Debug)]
struct Ears {
    all: broadcast::Sender<Ring>,
    work: broadcast::Sender<Ring>,
}

impl Ears {
    fn hear(&self, ring: Ring) {
        if !matches!(ring, Ring::Events(_)) {
            let _ = self.work.send(ring.clone());
        }
        let _ = self.all.send(ring);
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        let heard = Ears { all: broadcast::channel(KEPT).0, work: broadcast::channel(KEPT).0 };
        Self { heard, rung: broadcast::channel(KEPT).0, live: Live::default() }
    }
}

impl Doorbell {
    /// Rings, here and wherever a relay carries it. Nobody needs to listen.
    pub fn ring(&self, ring: Ring) {
        if self.rung.receiver_count() > 0 {
            let _ = self.rung.send(ring.clone());
        }
        self.heard.hear(ring);
    }

    /// Lets the parts of this process hear what was rung elsewhere.
    pub fn bring_in(&self, ring: Ring) {
        self.heard.hear(ring);
    }

    /// A doorbell that does not keep this one alive: for a relay, which ends when nobody else uses the bell.
    pub(crate) fn downgrade(&self) -> WeakDoorbell {
        WeakDoorbell { all: self.heard.all.downgrade(), work: self.heard.work.downgrade() }
    }

    /// Registers a listener. Register before querying, then nothing is missed; a listener that lags must query again.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Ring> {
        self.heard.all.subscribe()
    }

    /// The same for a listener that events are nothing to: it is notified of every ring but [`Ring::Events`].
    #[must_use]
    pub fn listen_for_work(&self) -> broadcast::Receiver<Ring> {
        self.heard.work.subscribe()
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
    all: broadcast::WeakSender<Ring>,
    work: broadcast::WeakSender<Ring>,
}

impl WeakDoorbell {
    /// Lets the parts of this process hear what was rung elsewhere.
    pub(crate) fn bring_in(&self, ring: Ring) {
        if let (Some(all), Some(work)) = (self.all.upgrade(), self.work.upgrade()) {
            Ears { all, work }.hear(ring);
        }
    }
}
