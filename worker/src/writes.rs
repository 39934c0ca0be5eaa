//! The writes of a worker's turns that are under way.
//!
//! A turn that writes and goes on holds half as much memory again as one that waits for its model. So a worker with many
//! slots first lets the turns that it has come to such a wait, and claims further jobs then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// While so many writes are under way, the worker claims no jobs. They fill a commit of the store, and keep it busy during a claim.
pub(crate) const MANY: usize = 512;

/// The number of writes under way. Clones are the same number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writes(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    under_way: AtomicUsize,
    /// Notified when there are few again.
    few: Notify,
}

/// A write under way; dropping it ends it. The first write of a job is under way from its claim on, until its turn waits for
/// something else.
#[derive(Debug)]
pub(crate) struct Writing(Writes);

impl Writes {
    /// Counts a write.
    pub(crate) fn begin(&self) -> Writing {
        self.0.under_way.fetch_add(1, Ordering::AcqRel);
        Writing(self.clone())
    }

    /// Waits until fewer than [`MANY`] writes are under way. Only the claimer waits here.
    pub(crate) async fn are_few(&self) {
        while self.0.under_way.load(Ordering::Acquire) >= MANY {
            self.0.few.notified().await;
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let Writes(writes) = &self.0;
        if writes.under_way.fetch_sub(1, Ordering::AcqRel) == MANY {
            writes.few.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn a_claim_waits_while_many_writes_are_under_way() {
        let writes = Writes::default();
        let mut under_way: Vec<_> = (1..MANY).map(|_| writes.begin()).collect();
        assert!(writes.are_few().now_or_never().is_some());
        under_way.push(writes.begin());
        let mut waiting = std::pin::pin!(writes.are_few());
        assert!(waiting.as_mut().now_or_never().is_none());
        under_way.pop();
        assert!(waiting.now_or_never().is_some());
    }
}
