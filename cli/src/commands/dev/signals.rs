//! Ctrl-C and SIGTERM, as often as they come.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Hears the signals that ask this process to stop, from the moment on that it was made.
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

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
