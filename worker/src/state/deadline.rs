//! The end of an attempt's time. It waits for a write in progress: otherwise a paid answer or a tool's known
//! outcome would be lost, and bought or produced again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;
use turnstone_domain::JobError;

/// Records if the time is over, and if a write is in progress.
#[derive(Default)]
pub struct Deadline {
    over: OnceLock<Box<JobError>>,
    writing: AtomicBool,
    written: Notify,
}

/// A write in progress, until it is dropped.
pub struct Writing<'a>(&'a Deadline);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.writing.store(false, Ordering::Release);
        self.0.written.notify_waiters();
    }
}

impl Deadline {
    /// Marks the beginning of a write.
    pub fn write(&self) -> Writing<'_> {
        self.writing.store(true, Ordering::Release);
        Writing(self)
    }

    /// Ends the time with this error; returns once no write is in progress.
    pub async fn pass(&self, error: JobError) -> JobError {
        let error = (**self.over.get_or_init(|| Box::new(error))).clone();
        loop {
            // Registered before the look, so that the end of a write in between is noticed.
            let written = self.written.notified();
            if !self.writing.load(Ordering::Acquire) {
                return error;
            }
            written.await;
        }
    }

    /// Checks that the time is not over, so that new work may begin.
    ///
    /// # Errors
    /// The error with which the time ended.
    pub fn check(&self) -> Result<(), JobError> {
        self.over.get().map_or(Ok(()), |error| Err((**error).clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use turnstone_domain::error::FailureKind;

    #[test]
    fn what_is_being_written_is_waited_for_and_nothing_new_begins() {
        let deadline = Deadline::default();
        let late = || JobError::new(FailureKind::Timeout, "too late");
        let writing = deadline.write();
        let mut over = Box::pin(deadline.pass(late()));
        assert!(deadline.check().is_ok());
        assert_eq!((&mut over).now_or_never(), None, "the write is under way");
        assert!(deadline.check().is_err(), "it is known as soon as it is so");
        drop(writing);
        assert_eq!(over.now_or_never(), Some(late()));
        assert_eq!(deadline.pass(late()).now_or_never(), Some(late()), "nothing is written");
    }
}
