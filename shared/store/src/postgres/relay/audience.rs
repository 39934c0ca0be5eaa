//! The other processes that listen, as they announce themselves: hints that none of them waits for are not sent.
//!
//! Every process announces itself when it begins to listen and then every ten seconds, and asks the others to answer. One
//! that begins to wait for events of streams announces it at once. A process that receives the first announcement of another
//! one sends it hints of all kinds, because earlier hints were not sent. Until the listeners are known, every hint is sent.

use super::Here;
use crate::Ring;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How often a process announces itself.
const ANNOUNCED: Duration = Duration::from_secs(10);
/// A process that was silent for this long has ended.
const ENDED: Duration = Duration::from_secs(35);
/// By then every other process has answered one that has begun to listen.
const ANSWERED: Duration = Duration::from_millis(500);

/// See the module.
#[derive(Default)]
pub(super) struct Audience {
    known: Mutex<Listeners>,
    stirred: Notify,
}

#[derive(Default)]
struct Listeners {
    others: HashMap<String, Other>,
    /// Since when this process has listened.
    since: Option<Instant>,
    /// The announcement that was sent last, and when.
    said: Option<(Here, Instant)>,
    /// True if another process asks for one.
    asked: bool,
    /// True if one waits for work that did not before.
    new_worker: bool,
    /// True if one waits for events that did not before.
    new_follower: bool,
}

/// Another process.
struct Other {
    seen: Instant,
    events: bool,
}

impl Audience {
    fn known(&self) -> MutexGuard<'_, Listeners> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This process listens from now on.
    pub(super) fn listens(&self) {
        let mut known = self.known();
        (known.since, known.said) = (Some(Instant::now()), None);
        self.stirred.notify_one();
    }

    /// This process does not listen.
    pub(super) fn is_deaf(&self) {
        self.known().since = None;
    }

    /// Takes in a message of another process, with its announcement if there is one.
    pub(super) fn met(&self, origin: &str, here: Option<Here>) {
        let mut known = self.known();
        let before = known.others.get(origin).map(|other| other.events);
        let events = here.map_or_else(|| before.unwrap_or(true), |here| here.events);
        known.others.insert(origin.to_owned(), Other { seen: Instant::now(), events });
        known.asked |= here.is_some_and(|here| here.asks);
        known.new_worker |= before.is_none();
        known.new_follower |= events && before != Some(true);
        if known.asked || known.new_worker || known.new_follower {
            self.stirred.notify_one();
        }
    }

    /// Notes that hints were not sent: all others have to look.
    pub(super) fn missed(&self) {
        let mut known = self.known();
        (known.said, known.new_worker, known.new_follower) = (None, true, true);
        self.stirred.notify_one();
    }

    /// Returns true when another process may wait for this hint. A hint about a lease is always sent.
    pub(super) fn waits_for(&self, ring: &Ring) -> bool {
        let known = self.known();
        let is_unknown = known.since.is_none_or(|since| since.elapsed() < ANSWERED);
        let mut others = known.others.values().filter(|other| other.seen.elapsed() < ENDED);
        is_unknown
            || match ring {
                Ring::Revoked(_) | Ring::Asked(_) => true,
                Ring::Available | Ring::Due => others.next().is_some(),
                Ring::Events(_) | Ring::AllEvents => others.any(|other| other.events),
            }
    }

    /// Waits until an announcement may be due without a hint.
    pub(super) async fn stirs(&self) {
        tokio::select! {
            () = self.stirred.notified() => {}
            () = tokio::time::sleep(ANNOUNCED) => {}
        }
    }

    /// Returns the announcement of this process, if one is due, and hints for processes that are new to it. `events`: it
    /// waits for events of streams.
    pub(super) fn greeting(&self, events: bool) -> (Option<Here>, Vec<Ring>) {
        let mut known = self.known();
        let known = &mut *known;
        if known.since.is_none() {
            return (None, Vec::new());
        }
        known.others.retain(|_, other| other.seen.elapsed() < ENDED);
        let mut missed = Vec::new();
        if std::mem::take(&mut known.new_worker) {
            missed.extend([Ring::Available, Ring::Due]);
        }
        missed.extend(std::mem::take(&mut known.new_follower).then_some(Ring::AllEvents));
        let here = Here { events, asks: known.said.is_none() };
        let is_due = |(said, at): (Here, Instant)| at.elapsed() >= ANNOUNCED || (events && !said.events);
        if !std::mem::take(&mut known.asked) && !known.said.is_none_or(is_due) {
            return (None, missed);
        }
        known.said = Some((here, Instant::now()));
        (Some(here), missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENTS: Here = Here { events: true, asks: true };
    const WORK: Here = Here { events: false, asks: false };

    #[tokio::test(start_paused = true)]
    async fn hints_are_sent_until_it_is_known_who_listens() {
        let audience = Audience::default();
        let events = Ring::Events("a".to_owned());
        assert!(audience.waits_for(&events));
        audience.listens();
        assert!(audience.waits_for(&events));
        assert_eq!(audience.greeting(false), (Some(Here { events: false, asks: true }), Vec::new()));
        tokio::time::advance(ANSWERED).await;
        assert!(!audience.waits_for(&events) && !audience.waits_for(&Ring::Available));
        assert!(audience.waits_for(&Ring::Revoked("token".to_owned())));
        audience.is_deaf();
        assert!(audience.waits_for(&events));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_listener_looks_for_what_it_waits_for() {
        let audience = Audience::default();
        audience.listens();
        audience.greeting(false);
        tokio::time::advance(ANSWERED).await;
        audience.met("worker", Some(WORK));
        assert_eq!(audience.greeting(false), (None, vec![Ring::Available, Ring::Due]));
        assert!(audience.waits_for(&Ring::Due) && !audience.waits_for(&Ring::AllEvents));
        audience.met("worker", Some(EVENTS));
        let (here, missed) = audience.greeting(true);
        assert_eq!((here, missed), (Some(Here { events: true, asks: false }), vec![Ring::AllEvents]));
        assert!(audience.waits_for(&Ring::AllEvents));
        // A message without an announcement does not change what its sender waits for.
        audience.met("worker", None);
        assert!(audience.waits_for(&Ring::AllEvents));
        tokio::time::advance(ENDED).await;
        assert!(!audience.waits_for(&Ring::Due), "it was silent for long");
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_begins_to_wait_for_events_says_so_at_once() {
        let audience = Audience::default();
        audience.listens();
        assert!(audience.greeting(false).0.is_some());
        assert_eq!(audience.greeting(false).0, None);
        assert_eq!(audience.greeting(true).0, Some(Here { events: true, asks: false }));
        assert_eq!(audience.greeting(false).0, None, "that it no longer does can wait");
        tokio::time::advance(ANNOUNCED).await;
        assert_eq!(audience.greeting(false).0, Some(Here { events: false, asks: false }));
    }
}
