//! The end of an attempt's time. It waits for a write in progress: otherwise a paid answer or a tool's known
//! outcome would be lost, and bought or produced again.

use std::sync::OnceLock;
use tokio::sync::watch;
use turnstone_domain::JobError;

/// Records if the time is over, and if a write is in progress.
pub struct Deadline {
    over: OnceLock<JobError>,
    writing: watch::Sender<bool>,
}

impl Default for Deadline {
    fn default() -> Self {
        Self { over: OnceLock::new(), writing: watch::Sender::new(false) }
    }
}

/// A write in progress, until it is dropped.
pub struct Writing<'a>(&'a Deadline);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.writing.send_replace(false);
    }
}

impl Deadline {
    /// Marks the beginning of a write.
    pub fn write(&self) -> Writing<'_> {
        self.writing.send_replace(true);
        Writing(self)
    }

    /// Ends the time with this error; returns once no write is in progress.
    pub async fn pass(&self, error: JobError) -> JobError {
        let error = self.over.get_or_init(|| error).clone();
        // The sender is part of `self`, so it cannot be gone.
        let _ = self.writing.subscribe().wait_for(|writing| !*writing).await;
        error
    }

    /// Checks that the time is not over, so that new work may begin.
    ///
    /// # Errors
    /// The error with which the time ended.
    pub fn check(&self) -> Result<(), JobError> {
        self.over.get().map_or(Ok(()), |error| Err(error.clone()))
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
