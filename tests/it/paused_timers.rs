//! Timers of this process that stand until a test moves them: what takes seconds in real time takes none.

use std::time::Duration;
use tokio::task::JoinHandle;

/// While this lives, timers move only by [`PausedTimers::advance`]. Otherwise a paused clock would run ahead whenever all tasks
/// wait for the network; the runtime lets it stand as long as something blocks. Only for a runtime of one thread.
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

    /// Lets the timers go on in real time.
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
