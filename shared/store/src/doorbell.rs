//! Volatile hints between the parts of a fleet. Losing one is harmless, because every part polls as well.

use crate::live::Live;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{Notify, broadcast, mpsc};

/// Rings that may wait for a slow listener, or hints for a slow relay, before it has to look again.
const KEPT: usize = 4096;

/// A hint that something may have happened.
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
    /// There may be new events in any stream.
    AllEvents,
}

/// The doorbell; its clones send and receive the same hints.
///
/// It reaches the parts of this process. A relay carries the hints of this process to other processes, and brings
/// in theirs. A hint that came in is never carried out again.
#[derive(Clone, Debug)]
pub struct Doorbell {
    heard: Ears,
    sent_here: broadcast::Sender<Ring>,
    revoked: Arc<Mutex<Vec<mpsc::UnboundedSender<Ring>>>>,
    listened: Arc<Notify>,
    live: Live,
}

/// The receivers of a hint. Most hints are about events, and only readers of events wait for those.
#[derive(Clone, Debug)]
struct Ears {
    all: broadcast::Sender<Ring>,
    work: broadcast::Sender<Ring>,
}

impl Ears {
    fn hear(&self, ring: Ring) {
        if !matches!(ring, Ring::Events(_) | Ring::AllEvents) {
            let _ = self.work.send(ring.clone());
        }
        let _ = self.all.send(ring);
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        let heard = Ears { all: broadcast::channel(KEPT).0, work: broadcast::channel(KEPT).0 };
        Self {
            heard,
            sent_here: broadcast::channel(KEPT).0,
            revoked: Arc::default(),
            listened: Arc::default(),
            live: Live::default(),
        }
    }
}

impl Doorbell {
    /// Sends a hint, here and wherever a relay carries it. It need not have a receiver.
    pub fn ring(&self, ring: Ring) {
        if is_about_a_lease(&ring) {
            let mut relays = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
            relays.retain(|relay| relay.send(ring.clone()).is_ok());
        } else if self.sent_here.receiver_count() > 0 {
            let _ = self.sent_here.send(ring.clone());
        }
        self.heard.hear(ring);
    }

    /// Passes on to the parts of this process a hint of another process.
    pub fn bring_in(&self, ring: Ring) {
        self.heard.hear(ring);
    }

    /// Returns a doorbell that does not keep this one alive. A relay holds it, and ends when all other users have
    /// gone.
    pub(crate) fn downgrade(&self) -> WeakDoorbell {
        WeakDoorbell { all: self.heard.all.downgrade(), work: self.heard.work.downgrade() }
    }

    /// Registers a listener. Register before querying, then nothing is missed; a listener that lags must query again.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Ring> {
        let ear = self.heard.all.subscribe();
        self.listened.notify_one();
        ear
    }

    /// The same for a listener that does not read events: it receives every hint but [`Ring::Events`].
    #[must_use]
    pub fn listen_for_work(&self) -> broadcast::Receiver<Ring> {
        self.heard.work.subscribe()
    }

    /// The live text of models: as volatile as a hint, and carried by the same relays.
    #[must_use]
    pub fn live(&self) -> &Live {
        &self.live
    }

    /// Returns the signal that each new listener for every hint sends.
    #[must_use]
    pub(crate) fn listened(&self) -> Arc<Notify> {
        Arc::clone(&self.listened)
    }

    /// Returns the hints of this process from now on, for one relay.
    #[must_use]
    pub(crate) fn outgoing(&self) -> Outgoing {
        let (relay, revoked) = mpsc::unbounded_channel();
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner).push(relay);
        let followers = self.heard.all.downgrade();
        Outgoing { hints: self.sent_here.subscribe(), revoked, followers, unsent: Vec::new() }
    }
}

/// Returns true for a hint that only the holder of one lease waits for. No later hint replaces it.
fn is_about_a_lease(ring: &Ring) -> bool {
    matches!(ring, Ring::Revoked(_) | Ring::Asked(_))
}

/// The hints of one process, for one relay. A relay that lags misses hints, and makes every part look instead. It
/// misses no hint about a lease.
#[derive(Debug)]
pub(crate) struct Outgoing {
    hints: broadcast::Receiver<Ring>,
    revoked: mpsc::UnboundedReceiver<Ring>,
    followers: broadcast::WeakSender<Ring>,
    /// Hints about leases that were gathered, and are not confirmed as sent.
    unsent: Vec<Ring>,
}

impl Outgoing {
    /// Waits for a hint and returns it with those that have gathered, each once, until their sizes fill `room`. Returns `None`
    /// when the doorbell is gone. Rings about leases come again until they are [sent](Outgoing::sent).
    pub(crate) async fn gather(&mut self, room: usize, size: fn(&Ring) -> usize) -> Option<Vec<Ring>> {
        let mut gathered = Gathered { rings: Vec::new(), seen: HashSet::new(), room, size };
        if self.unsent.is_empty() {
            tokio::select! {
                biased;
                Some(ring) = self.revoked.recv() => gathered.add(ring),
                hint = self.hints.recv() => match hint {
                    Ok(ring) => gathered.add(ring),
                    // What was missed is unknown: all look once.
                    Err(RecvError::Lagged(_)) => gathered.look(),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
        self.unsent.drain(..).for_each(|ring| gathered.add(ring));
        while gathered.room > 0 {
            if let Ok(ring) = self.revoked.try_recv() {
                gathered.add(ring);
                continue;
            }
            match self.hints.try_recv() {
                Ok(ring) => gathered.add(ring),
                Err(TryRecvError::Lagged(_)) => gathered.look(),
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        self.unsent = gathered.rings.iter().filter(|ring| is_about_a_lease(ring)).cloned().collect();
        Some(gathered.rings)
    }

    /// Notes that what was gathered last is on its way.
    pub(crate) fn sent(&mut self) {
        self.unsent.clear();
    }

    /// Forgets the hints so far: they are old by now.
    pub(crate) fn forget_hints(&mut self) {
        self.hints = self.hints.resubscribe();
    }

    /// Returns true if this process has a listener for every ring, and not only for those about work.
    pub(crate) fn has_followers(&self) -> bool {
        self.followers.upgrade().is_some_and(|heard| heard.receiver_count() > 0)
    }

    /// Returns true when the doorbell is gone.
    pub(crate) fn is_closed(&self) -> bool {
        self.hints.is_closed()
    }
}

/// Rings of one message.
struct Gathered {
    rings: Vec<Ring>,
    seen: HashSet<Ring>,
    room: usize,
    size: fn(&Ring) -> usize,
}

impl Gathered {
    fn add(&mut self, ring: Ring) {
        if self.seen.insert(ring.clone()) {
            self.room = self.room.saturating_sub((self.size)(&ring));
            self.rings.push(ring);
        }
    }

    fn look(&mut self) {
        [Ring::Available, Ring::Due].into_iter().for_each(|ring| self.add(ring));
    }
}

/// See [`Doorbell::downgrade`].
#[derive(Clone, Debug)]
pub(crate) struct WeakDoorbell {
    all: broadcast::WeakSender<Ring>,
    work: broadcast::WeakSender<Ring>,
}

impl WeakDoorbell {
    /// Passes on to the parts of this process a hint of another process.
    pub(crate) fn bring_in(&self, ring: Ring) {
        if let (Some(all), Some(work)) = (self.all.upgrade(), self.work.upgrade()) {
            Ears { all, work }.hear(ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rings_that_gathered_go_together_and_each_of_them_once() {
        let doorbell = Doorbell::default();
        let mut ringing = doorbell.outgoing();
        let events = |id: &str| Ring::Events(id.to_owned());
        for ring in [Ring::Available, events("a"), Ring::Available, events("b"), Ring::Due, events("a")] {
            doorbell.ring(ring);
        }
        let gathered = ringing.gather(64, |_| 1).await.unwrap();
        assert_eq!(gathered, [Ring::Available, events("a"), events("b"), Ring::Due]);
        doorbell.downgrade().bring_in(Ring::Available);
        doorbell.ring(Ring::Due);
        let gathered = ringing.gather(64, |_| 1).await.unwrap();
        assert_eq!(gathered, [Ring::Due], "what came in is not carried out again");
        drop(doorbell);
        assert_eq!(ringing.gather(64, |_| 1).await, None);
    }

    #[tokio::test]
    async fn a_relay_that_lags_makes_all_parts_look() {
        let doorbell = Doorbell::default();
        let mut ringing = doorbell.outgoing();
        for number in 0..10_000 {
            doorbell.ring(Ring::Events(number.to_string()));
        }
        let rings = ringing.gather(64, |_| 1).await.unwrap();
        assert_eq!(rings[..2], [Ring::Available, Ring::Due]);
        assert_eq!(rings.len(), 64);
    }

    #[tokio::test]
    async fn a_relay_that_lags_drops_no_revocation() {
        let doorbell = Doorbell::default();
        let mut ringing = doorbell.outgoing();
        let revoked: Vec<Ring> = (0..10_000).map(|number| Ring::Revoked(number.to_string())).collect();
        for ring in &revoked {
            doorbell.ring(Ring::Events("busy".to_owned()));
            doorbell.ring(ring.clone());
        }
        // The first message is not sent.
        ringing.gather(6_000, |_| 1).await.unwrap();
        let mut carried = Vec::new();
        while carried.len() < revoked.len() {
            carried.extend(ringing.gather(6_001, |_| 1).await.unwrap());
            carried.retain(is_about_a_lease);
            ringing.sent();
        }
        assert_eq!(carried, revoked);
    }
}
