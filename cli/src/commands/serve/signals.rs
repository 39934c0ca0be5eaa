//! Ctrl-C and SIGTERM, as often as they come.

use std::future::Future;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Receives the signals that stop this process, from the moment on that it was made.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen; from now on the signals do not end the process by themselves.
    ///
    /// # Errors
    /// The operating system does not allow it.
    pub fn listen() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    /// Returns the result of `work`, unless a signal comes first.
    pub async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            () = self.next() => None,
        }
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
