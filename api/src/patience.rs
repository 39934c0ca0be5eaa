//! Clients that take nothing of what is sent to them.
//!
//! A stream reads on only when its client has taken what was read, so a slow client holds a page and what the system keeps for
//! its connection. One that takes nothing at all for a while is let go: it comes back after its last event.

use axum::serve::Listener;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio_io_timeout::TimeoutStream;

/// How long a client may take nothing of what waits for it, unless it is said otherwise.
pub const DEFAULT_CLIENT_PATIENCE: Duration = Duration::from_secs(30);

/// Connections whose clients are let go when they take nothing for so long.
pub(crate) struct Patient<L> {
    pub(crate) listener: L,
    pub(crate) patience: Duration,
}

impl<L: Listener> Listener for Patient<L> {
    type Io = Pin<Box<TimeoutStream<L::Io>>>;
    type Addr = L::Addr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = self.listener.accept().await;
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.patience));
        (Box::pin(stream), address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
