//! Timers of this process that a test moves: seconds of real time take none.

use std::time::Duration;
use tokio::task::JoinHandle;

/// While this exists, timers move only by [`PausedTimers::advance`]. Otherwise a paused clock would run ahead
/// whenever all tasks wait for the network; the runtime does not advance it while a task blocks. Only for a runtime
/// of one thread.
pub struct PausedTimers {
    end: std::sync::mpsc::Sender<()>,
    blocked: JoinHandle<()>,
}

impl PausedTimers {
    pub fn begin() -> Self {
        let (end, ended) = std::sync::mpsc::channel();
        let blocked = tokio::task::spawn_blocking(move || {
            let _ = ended.recv();
        });
        tokio::time::pause();
        Self { end, blocked }
    }

    /// Moves the timers.
    pub async fn advance(&self, time: Duration) {
        tokio::time::advance(time).await;
    }

    /// Resumes the timers in real time.
    pub async fn end(self) {
        tokio::time::resume();
        drop(self.end);
        self.blocked.await.unwrap();
    }

    /// Lets this much time pass at once.
    pub async fn skip(time: Duration) {
        let timers = Self::begin();
        timers.advance(time).await;
        timers.end().await;
    }
}
