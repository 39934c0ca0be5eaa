//! Where requests wait for the writers of a process, and how many of them share a commit.

use super::request::Asked;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Notify, mpsc};

/// At most this many requests share a commit: the bound of a commit's duration.
const BATCH: usize = 512;
/// So much weight is worth a commit of its own while another writer commits. A statement costs PostgreSQL about as much as ten
/// turns in it.
const WORTH: usize = 64;
/// A commit that takes longer than this does not hold up another one.
const OVERDUE: Duration = Duration::from_millis(20);

/// Where requests wait for the writers of a process.
pub(super) struct Inbox {
    requests: Mutex<mpsc::Receiver<Asked>>,
    /// Writers that commit just now.
    committing: AtomicUsize,
    /// Notified when one of them is done.
    committed: Notify,
    /// Notified once when no more requests are taken.
    closing: Notify,
}

impl Inbox {
    pub(super) fn new(requests: mpsc::Receiver<Asked>) -> Self {
        let (committed, closing) = (Notify::new(), Notify::new());
        Self { requests: Mutex::new(requests), committing: AtomicUsize::new(0), committed, closing }
    }

    /// Refuses further requests. Those that wait are still taken.
    pub(super) fn close(&self) {
        self.closing.notify_one();
    }

    /// Waits for requests and takes them; there are none when the inbox is closed, or every sender is gone. While another writer commits, a few wait
    /// for its end and for those that arrive meanwhile.
    pub(super) async fn take(&self) -> Vec<Asked> {
        let mut requests = self.requests.lock().await;
        let mut batch = Vec::new();
        let closed = tokio::select! {
            biased;
            _ = requests.recv_many(&mut batch, BATCH) => false,
            () = self.closing.notified() => true,
        };
        if closed {
            requests.close();
            requests.recv_many(&mut batch, BATCH).await;
        }
        let weight = |batch: &[Asked]| batch.iter().map(|asked| asked.work.weight()).sum::<usize>();
        if weight(&batch) < WORTH && self.committing.load(Ordering::Acquire) > 0 {
            let late = tokio::time::sleep(OVERDUE);
            tokio::pin!(late);
            while weight(&batch) < WORTH && self.committing.load(Ordering::Acquire) > 0 {
                let room = BATCH - batch.len();
                tokio::select! {
                    more = requests.recv_many(&mut batch, room) => if more == 0 { break },
                    () = self.committed.notified() => {}
                    () = &mut late => break,
                }
            }
        }
        self.committing.fetch_add(1, Ordering::AcqRel);
        batch
    }

    /// Notes that what a writer took is committed.
    pub(super) fn done(&self) {
        self.committing.fetch_sub(1, Ordering::AcqRel);
        self.committed.notify_one();
    }
}
