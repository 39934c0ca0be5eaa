//! Shared reads of a stream: rows that one follower reads are kept for the others, so that a thousand readers cost the
//! database as much as one.
//!
//! The kept rows are bounded, and no reader waits for a slow one: a reader that is further behind reads by itself, page
//! by page.

use crate::doorbell::{Bell, POLL};
use crate::outage::store_failed;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use turnstone_store::StoreError;

/// The most events that are kept for other readers, and their most bytes.
const KEPT: usize = 200;
const KEPT_BYTES: usize = 256 * 1024;

/// An item with a place in its stream.
pub(crate) trait Placed {
    /// Returns its place; later items have greater ones.
    fn place(&self) -> i64;
    /// Returns its approximate size in bytes.
    fn size(&self) -> usize;
}

/// The result of one read.
pub(crate) struct Page<E> {
    /// The items, in order.
    pub(crate) events: Vec<Arc<E>>,
    /// True if there may be more already.
    pub(crate) more: bool,
}

impl<E> Default for Page<E> {
    fn default() -> Self {
        Self { events: Vec::new(), more: false }
    }
}

/// Why a read returned nothing.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The cursor is lost: its events are not in the database.
    Lost,
    /// The store failed.
    Failed(String),
}

impl From<StoreError> for Unread {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::CursorLost { .. } => Self::Lost,
            error => Self::Failed(error.to_string()),
        }
    }
}

/// Returns the page that a reader behind the others has read by itself; `None` if its cursor is lost. More items follow unless
/// the page is empty, because the other readers are further. After an error of the store this returns after a suitable pause.
pub(crate) async fn alone<E>(read: Result<Page<E>, Unread>) -> Option<Page<E>> {
    match read {
        Ok(page) => Some(Page { more: !page.events.is_empty(), ..page }),
        Err(Unread::Lost) => None,
        Err(Unread::Failed(error)) => {
            unread(&error);
            tokio::time::sleep(POLL).await;
            Some(Page { events: Vec::new(), more: true })
        }
    }
}

fn unread(error: &impl std::fmt::Display) {
    store_failed!(warn, error, "events could not be read");
}

/// The outcome of a read.
pub(crate) enum Look<E> {
    /// The next items; there may be none.
    Found(Page<E>),
    /// The other readers are further, or the past was replaced: this reader reads by itself once, which checks its cursor.
    Behind,
    /// The store did not answer. A notification follows when it is time to read again.
    Failed,
}

/// The end of one stream, for all its followers.
pub(crate) struct SharedStream<E> {
    pub(crate) bell: Arc<Bell>,
    tail: tokio::sync::Mutex<Option<Tail<E>>>,
    /// How often the past was replaced.
    resets: AtomicU64,
}

struct Tail<E> {
    /// The number of notifications before the last read.
    rings: Option<u64>,
    /// The place after which everything is kept.
    from: i64,
    /// The place of the last kept item.
    last: i64,
    /// The item at that place, if one was read.
    newest: Option<Arc<E>>,
    kept: VecDeque<Arc<E>>,
    bytes: usize,
    more: bool,
    /// True if the last read failed.
    failed: bool,
}

impl<E: Placed> SharedStream<E> {
    pub(crate) fn new() -> Self {
        Self { bell: Bell::new(), tail: tokio::sync::Mutex::new(None), resets: AtomicU64::new(0) }
    }

    /// Returns how often the past of the stream was replaced. A reader gives the number of its last own read to [`Self::look`].
    pub(crate) fn resets(&self) -> u64 {
        self.resets.load(Ordering::Relaxed)
    }

    /// Returns the items after `after`, as of notification number `rings` or later. `others` is true if there are other
    /// followers: otherwise nothing is kept. `read` gets the place to read from, and the item at that place if one is known.
    pub(crate) async fn look<R: Future<Output = Result<Page<E>, Unread>>>(
        &self,
        (rings, resets): (u64, u64),
        after: i64,
        others: bool,
        read: impl FnOnce(i64, Option<Arc<E>>) -> R,
    ) -> Look<E> {
        let mut shared = self.tail.lock().await;
        if resets != self.resets() {
            return Look::Behind;
        }
        let tail = shared.get_or_insert_with(|| Tail {
            rings: None,
            from: after,
            last: after,
            newest: None,
            kept: VecDeque::new(),
            bytes: 0,
            more: false,
            failed: false,
        });
        if after < tail.from {
            return Look::Behind;
        }
        if tail.rings.is_none_or(|seen| seen < rings) || (tail.more && after >= tail.last) {
            let wakes = self.bell.rings();
            let page = read(tail.last, tail.newest.clone()).await;
            (tail.rings, tail.failed) = (Some(wakes), page.is_err());
            match page {
                Ok(page) => tail.append(page),
                Err(Unread::Lost) => {
                    *shared = None;
                    self.resets.fetch_add(1, Ordering::Relaxed);
                    return Look::Behind;
                }
                Err(Unread::Failed(error)) => {
                    unread(&error);
                    let bell = Arc::clone(&self.bell);
                    tokio::spawn(async move {
                        tokio::time::sleep(POLL).await;
                        bell.ring();
                    });
                }
            }
        }
        if tail.failed {
            return Look::Failed;
        }
        let new = tail.kept.iter().filter(|event| event.place() > after).cloned().collect();
        let found = Page { events: new, more: tail.more };
        tail.trim(others);
        Look::Found(found)
    }
}

impl<E: Placed> Tail<E> {
    fn append(&mut self, page: Page<E>) {
        self.more = page.more;
        for event in page.events {
            self.last = self.last.max(event.place());
            self.bytes += event.size();
            self.newest = Some(Arc::clone(&event));
            self.kept.push_back(event);
        }
    }

    fn trim(&mut self, others: bool) {
        let most = if others { KEPT } else { 0 };
        while self.kept.len() > most || self.bytes > KEPT_BYTES {
            let Some(event) = self.kept.pop_front() else { return };
            self.bytes -= event.size();
            self.from = event.place();
        }
    }
}

/// Streams by their subject; each exists as long as it is followed.
pub(crate) struct Streams<K, S>(Mutex<Listed<K, S>>);

struct Listed<K, S> {
    streams: HashMap<K, Weak<S>>,
    /// The number of streams at which unfollowed ones are removed.
    sweep: usize,
}

impl<K, S> Default for Streams<K, S> {
    fn default() -> Self {
        Self(Mutex::new(Listed { streams: HashMap::new(), sweep: 64 }))
    }
}

impl<K: Hash + Eq, S> Streams<K, S> {
    /// Returns the stream of this subject, or a new one.
    pub(crate) fn follow(&self, of: K, begin: impl FnOnce() -> S) -> Arc<S> {
        let mut listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = listed.streams.get(&of).and_then(Weak::upgrade) {
            return stream;
        }
        if listed.streams.len() >= listed.sweep {
            listed.streams.retain(|_, stream| stream.strong_count() > 0);
            listed.sweep = listed.streams.len() * 2 + 64;
        }
        let stream = Arc::new(begin());
        listed.streams.insert(of, Arc::downgrade(&stream));
        stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::ready;
    use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

    #[derive(Debug, PartialEq)]
    struct Number(i64);

    impl Placed for Number {
        fn place(&self) -> i64 {
            self.0
        }

        fn size(&self) -> usize {
            8
        }
    }

    /// A stream that counts how often it is read.
    #[derive(Default)]
    struct Counted {
        last: AtomicI64,
        reads: AtomicUsize,
    }

    impl Counted {
        async fn look(
            &self,
            at: &SharedStream<Number>,
            rings: u64,
            after: i64,
            others: bool,
        ) -> Look<Number> {
            let read = |after, _| {
                self.reads.fetch_add(1, Ordering::Relaxed);
                let last = self.last.load(Ordering::Relaxed).min(after + 200);
                let events = (after + 1..=last).map(|place| Arc::new(Number(place))).collect();
                ready(Ok(Page { events, more: last < self.last.load(Ordering::Relaxed) }))
            };
            at.look((rings, 0), after, others, read).await
        }
    }

    fn places(look: Look<Number>) -> Vec<i64> {
        match look {
            Look::Found(page) => page.events.iter().map(|event| event.0).collect(),
            Look::Behind => panic!("behind"),
            Look::Failed => panic!("failed"),
        }
    }

    #[tokio::test]
    async fn a_notification_is_one_read_for_all_followers() {
        let (at, counted) = (SharedStream::new(), Counted::default());
        assert!(places(counted.look(&at, 0, 0, true).await).is_empty());
        assert!(places(counted.look(&at, 0, 0, true).await).is_empty());
        assert_eq!(counted.reads.load(Ordering::Relaxed), 1, "nothing rang");
        counted.last.store(3, Ordering::Relaxed);
        at.bell.ring();
        for after in [0, 1, 2, 3] {
            let expected: Vec<i64> = (after + 1..=3).collect();
            assert_eq!(places(counted.look(&at, 1, after, true).await), expected);
        }
        assert_eq!(counted.reads.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn the_buffer_is_bounded_and_slow_readers_are_informed() {
        let (at, counted) = (SharedStream::new(), Counted::default());
        places(counted.look(&at, 0, 0, true).await);
        counted.last.store(450, Ordering::Relaxed);
        at.bell.ring();
        for (after, found) in [(0, 200), (200, 200), (400, 50)] {
            assert_eq!(places(counted.look(&at, 1, after, true).await).len(), found);
        }
        assert!(matches!(counted.look(&at, 1, 100, true).await, Look::Behind));
        assert_eq!(places(counted.look(&at, 1, 300, true).await).len(), 150);
        assert_eq!(at.tail.lock().await.as_ref().unwrap().kept.len(), KEPT);
        places(counted.look(&at, 1, 450, false).await);
        assert!(at.tail.lock().await.as_ref().unwrap().kept.is_empty(), "no other client follows");
    }

    #[tokio::test]
    async fn a_silent_store_is_polled_once_and_at_a_notification() {
        let at = SharedStream::<Number>::new();
        let mut listening = at.bell.listen();
        let tries = AtomicUsize::default();
        let look = async |rings| {
            let read = |_, _| {
                tries.fetch_add(1, Ordering::Relaxed);
                ready(Err(Unread::Failed("gone".to_owned())))
            };
            at.look((rings, 0), 0, true, read).await
        };
        assert!(matches!(look(0).await, Look::Failed));
        assert!(matches!(look(0).await, Look::Failed));
        assert_eq!(tries.load(Ordering::Relaxed), 1);
        listening.changed().await.unwrap();
        assert!(matches!(look(1).await, Look::Failed));
    }

    #[tokio::test]
    async fn a_replaced_past_makes_every_reader_check_its_cursor() {
        let (at, counted) = (SharedStream::new(), Counted::default());
        counted.last.store(3, Ordering::Relaxed);
        assert_eq!(places(counted.look(&at, 0, 0, true).await), [1, 2, 3]);
        at.bell.ring();
        let lost = |_, _| ready(Err(Unread::Lost));
        assert!(matches!(at.look((1, 0), 3, true, lost).await, Look::Behind));
        assert!(matches!(counted.look(&at, 1, 2, true).await, Look::Behind), "another reader");
        assert_eq!(at.resets(), 1);
    }

    #[test]
    fn a_stream_is_there_as_long_as_it_is_followed() {
        let streams: Streams<&str, usize> = Streams::default();
        let one = streams.follow("a", || 1);
        assert_eq!(*streams.follow("a", || 2), 1);
        drop(one);
        assert_eq!(*streams.follow("a", || 3), 3);
    }
}
