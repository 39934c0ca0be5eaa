//! The writes of a worker's turns that are under way.
//!
//! A turn holds half as much memory again while it works than while it waits for its model. So a worker with many slots claims
//! no further jobs before most of those that it has wait for their models.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// While so many writes are under way, the worker claims no jobs. They fill a commit of the store, and keep it busy during a
/// claim.
pub(crate) const MANY: usize = 512;
/// The longest that a claim waits for them. The first write of a turn may have to wait for something else, such as a freeze or
/// the tool call of a resumed turn. Other jobs have nothing to do with that.
pub(crate) const LONGEST: Duration = Duration::from_secs(2);

/// The number of writes under way. Clones are the same number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Writes(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    under_way: AtomicUsize,
    /// Notified when there are few again.
    few: Notify,
}

/// A write under way; dropping it ends it. The first write of a job is under way from its claim on. A settlement is none: its
/// slot is free already, and belongs to the next job.
#[derive(Debug)]
pub(crate) struct UnderWay(Writes);

impl Writes {
    /// Counts a write.
    pub(crate) fn begin(&self) -> UnderWay {
        self.0.under_way.fetch_add(1, Ordering::AcqRel);
        UnderWay(self.clone())
    }

    /// Waits until fewer than [`MANY`] writes are under way, at most [`LONGEST`]. Only the claimer waits here.
    pub(crate) async fn are_few(&self) {
        let few = async {
            while self.0.under_way.load(Ordering::Acquire) >= MANY {
                self.0.few.notified().await;
            }
        };
        let _ = tokio::time::timeout(LONGEST, few).await;
    }
}

impl Drop for UnderWay {
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

    #[tokio::test(start_paused = true)]
    async fn a_claim_waits_while_many_writes_are_under_way() {
        let writes = Writes::default();
        let mut under_way: Vec<_> = (1..MANY).map(|_| writes.begin()).collect();
        assert!(writes.are_few().now_or_never().is_some());
        under_way.push(writes.begin());
        {
            let mut waiting = std::pin::pin!(writes.are_few());
            assert!(waiting.as_mut().now_or_never().is_none());
            under_way.pop();
            assert!(waiting.now_or_never().is_some());
        }
        under_way.push(writes.begin());
        let began = tokio::time::Instant::now();
        writes.are_few().await;
        assert_eq!(began.elapsed().as_secs(), LONGEST.as_secs());
    }
}
