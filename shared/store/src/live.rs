//! The text of models while they still produce it. None of it is stored: the whole answer becomes a message and an
//! event when it is durable. So losing a piece, or all of them, loses nothing.

use async_recursion::async_recursion as boxed;
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use turnstone_domain::{EngagementId, JobId};

/// Pieces that wait for a slow listener; older ones are lost to it. Each engagement that is listened to has room for so many.
const KEPT: usize = 128;
/// Pieces that wait for a relay; older ones are lost to it.
const CARRIED: usize = 1024;
/// The longest piece, in bytes: a longer text is said in several.
const LONGEST: usize = 4096;

/// A piece of an answer that is not complete yet.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Piece {
    /// The engagement.
    pub engagement: EngagementId,
    /// The job, in its unique form.
    #[serde(serialize_with = "JobId::serialize_whole")]
    pub job: JobId,
    /// The turn.
    pub turn: i64,
    /// The number of characters of the answer before this piece. 0 begins anew, as when another model is asked. A
    /// number that differs from what a listener has received shows that pieces are missing.
    pub offset: u64,
    /// The text.
    pub text: String,
}

/// The exchange of live text; its clones share the same listeners.
///
/// It reaches the parts of this process. A relay carries what is said here to other processes, and brings in what is said
/// there; what came in is never carried out again.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<LiveListeners>);

#[derive(Debug)]
struct LiveListeners {
    listened: Mutex<HashMap<EngagementId, broadcast::Sender<Arc<Piece>>>>,
    /// Counts up when a listener of an engagement comes or goes.
    changed: watch::Sender<u64>,
    carried: broadcast::Sender<Piece>,
}

impl Default for LiveListeners {
    fn default() -> Self {
        Self {
            listened: Mutex::default(),
            changed: watch::channel(0).0,
            carried: broadcast::channel(CARRIED).0,
        }
    }
}

impl LiveListeners {
    fn listened(&self) -> MutexGuard<'_, HashMap<EngagementId, broadcast::Sender<Arc<Piece>>>> {
        self.listened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, piece: Piece) {
        if let Some(ears) = self.listened().get(&piece.engagement) {
            let _ = ears.send(Arc::new(piece));
        }
    }
}

impl Live {
    /// Returns a speaker for one answer, from its beginning.
    #[must_use]
    pub fn speaker(&self, engagement: EngagementId, job: JobId, turn: i64) -> Speaker {
        Speaker { live: self.clone(), engagement, job, turn, said: AtomicU64::new(0) }
    }

    /// Listens to an engagement from now on.
    #[must_use]
    pub fn listen(&self, engagement: &EngagementId) -> Ear {
        let mut listened = self.0.listened();
        let heard = match listened.get(engagement) {
            Some(ears) => ears.subscribe(),
            None => {
                let (ears, heard) = broadcast::channel(KEPT);
                listened.insert(engagement.clone(), ears);
                self.0.changed.send_modify(|changes| *changes += 1);
                heard
            }
        };
        Ear { place: Arc::clone(&self.0), engagement: engagement.clone(), heard }
    }

    fn say(&self, piece: Piece) {
        if self.0.carried.receiver_count() > 0 {
            let _ = self.0.carried.send(piece.clone());
        }
        self.0.hear(piece);
    }

    /// For a relay: what is said in this process.
    pub(crate) fn outgoing(&self) -> broadcast::Receiver<Piece> {
        self.0.carried.subscribe()
    }

    /// Returns a receiver for a relay, notified when a listener comes or goes.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    /// Returns a handle that does not keep this one alive. A relay holds it, and ends when all other users have
    /// gone.
    pub(crate) fn downgrade(&self) -> WeakLive {
        WeakLive(Arc::downgrade(&self.0))
    }
}

/// See [`Live::downgrade`].
#[derive(Clone, Debug)]
pub(crate) struct WeakLive(Weak<LiveListeners>);

impl WeakLive {
    /// Passes on a piece of another process to the listeners of this one.
    pub(crate) fn bring_in(&self, piece: Piece) {
        if let Some(place) = self.0.upgrade() {
            place.hear(piece);
        }
    }

    /// Returns the engagements that have a listener.
    pub(crate) fn listened(&self) -> HashSet<EngagementId> {
        self.0.upgrade().map(|place| place.listened().keys().cloned().collect()).unwrap_or_default()
    }
}

/// Says one answer, piece by piece.
#[derive(Debug)]
pub struct Speaker {
    live: Live,
    engagement: EngagementId,
    job: JobId,
    turn: i64,
    said: AtomicU64,
}

impl Speaker {
    /// Sends the next piece. It never waits, and costs nothing without a listener.
    pub fn say(&self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(LONGEST));
            let characters = u64::try_from(piece.chars().count()).unwrap_or(u64::MAX);
            let offset = self.said.fetch_add(characters, Ordering::Relaxed);
            self.live.say(Piece {
                engagement: self.engagement.clone(),
                job: self.job.clone(),
                turn: self.turn,
                offset,
                text: piece.to_owned(),
            });
            rest = after;
        }
    }
}

/// A listener to one engagement.
#[derive(Debug)]
pub struct Ear {
    place: Arc<LiveListeners>,
    engagement: EngagementId,
    heard: broadcast::Receiver<Arc<Piece>>,
}

impl Ear {
    /// Waits for the next piece. A slow listener misses pieces, and sees it by their offsets.
    #[boxed]
    pub async fn hear(&mut self) -> Arc<Piece> {
        loop {
            match self.heard.recv().await {
                Ok(piece) => return piece,
                Err(RecvError::Lagged(_)) => {}
                // The sender lives as long as an ear does.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let mut listened = self.place.listened();
        // This one is still counted.
        if listened.get(&self.engagement).is_some_and(|ears| ears.receiver_count() <= 1) {
            listened.remove(&self.engagement);
            self.place.changed.send_modify(|changes| *changes += 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn speaker(live: &Live, engagement: &str) -> Speaker {
        live.speaker(engagement.into(), "j".into(), 1)
    }

    #[tokio::test]
    async fn a_piece_reaches_the_listeners_of_its_engagement_alone() {
        let live = Live::default();
        speaker(&live, "a").say("before anybody listens");
        let (mut one, mut two, mut other) =
            (live.listen(&"a".into()), live.listen(&"a".into()), live.listen(&"b".into()));
        let speaker = speaker(&live, "a");
        speaker.say("Zürich ");
        speaker.say("18 °C");
        for ear in [&mut one, &mut two] {
            let (first, second) = (ear.hear().await, ear.hear().await);
            assert_eq!((first.offset, first.text.as_str()), (0, "Zürich "));
            assert_eq!((second.offset, second.text.as_str()), (7, "18 °C"));
        }
        assert!(other.hear().now_or_never().is_none());
        drop(one);
        assert_eq!(live.downgrade().listened().len(), 2);
        drop((two, other));
        assert!(live.downgrade().listened().is_empty());
    }

    #[tokio::test]
    async fn a_slow_listener_misses_the_oldest_pieces_and_delays_no_other() {
        let live = Live::default();
        let mut ear = live.listen(&"a".into());
        let speaker = speaker(&live, "a");
        for _ in 0..KEPT + 10 {
            speaker.say("x");
        }
        assert_eq!(ear.hear().await.offset, 10);
    }

    #[tokio::test]
    async fn a_long_text_is_said_in_pieces_that_join() {
        let live = Live::default();
        let mut ear = live.listen(&"a".into());
        let text = "ä".repeat(LONGEST);
        speaker(&live, "a").say(&text);
        let (mut joined, mut offset) = (String::new(), 0);
        while joined.len() < text.len() {
            let piece = ear.hear().await;
            assert_eq!(piece.offset, offset);
            assert!(piece.text.len() <= LONGEST);
            offset += u64::try_from(piece.text.chars().count()).unwrap();
            joined += &piece.text;
        }
        assert_eq!(joined, text);
    }
}
