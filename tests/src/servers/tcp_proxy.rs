//! A TCP proxy that can be cut, stalled and healed while connections run through it.

use super::beside;
use super::port::Port;
use crate::wait;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The proxy. It ends, with its connections, when it is dropped.
pub struct TcpProxy {
    target: SocketAddr,
    port: Arc<Port>,
    stalled: watch::Sender<bool>,
    serving: Mutex<Option<Serving>>,
}

struct Serving {
    cut: CancellationToken,
    done: AbortOnDropHandle<()>,
}

impl TcpProxy {
    /// Starts a proxy to `target` that forwards everything.
    pub async fn start(target: SocketAddr) -> Self {
        let port = Arc::new(beside(Port::reserve).await);
        let proxy = Self { target, port, stalled: watch::channel(false).0, serving: Mutex::default() };
        proxy.heal().await;
        proxy
    }

    /// Returns its address. It stays the same over cuts.
    pub fn addr(&self) -> SocketAddr {
        self.port.addr()
    }

    /// Drops every connection and refuses new ones; returns when both have happened.
    pub async fn cut(&self) {
        let serving = self.serving().take();
        if let Some(Serving { cut, done }) = serving {
            cut.cancel();
            done.await.expect("the proxy does not panic");
            // A program that this process is starting holds a copy of the listener until its own code runs.
            // With the copy the system continues to accept. That ends within moments.
            let refused = async || TcpStream::connect(self.addr()).await.is_err();
            wait::until("the port of a cut proxy refuses connections", refused).await;
        }
    }

    /// Accepts connections and forwards nothing, in neither direction, on old and on new ones. Neither side
    /// is notified. Data sent meanwhile arrives after [`TcpProxy::heal`].
    pub async fn stall(&self) {
        self.stalled.send_replace(true);
        self.serve().await;
    }

    /// Forwards everything again.
    pub async fn heal(&self) {
        self.stalled.send_replace(false);
        self.serve().await;
    }

    async fn serve(&self) {
        if self.serving().is_some() {
            return;
        }
        let listener = TcpListener::bind(self.addr()).await.expect("the reserved port");
        let cut = CancellationToken::new();
        let serving = accept(listener, self.target, self.stalled.subscribe(), cut.clone());
        let done = AbortOnDropHandle::new(tokio::spawn(serving));
        *self.serving() = Some(Serving { cut, done });
    }

    fn serving(&self) -> MutexGuard<'_, Option<Serving>> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(
    listener: TcpListener,
    target: SocketAddr,
    stalled: watch::Receiver<bool>,
    cut: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = cut.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => {
                // A connection that cannot be accepted was closed by its client.
                if let Ok((client, _)) = accepted {
                    connections.spawn(connect(client, target, stalled.clone()));
                }
            }
        }
    }
    drop(listener);
    connections.shutdown().await;
}

/// Forwards one connection until one side ends it or breaks.
async fn connect(client: TcpStream, target: SocketAddr, mut stalled: watch::Receiver<bool>) {
    if passes(&mut stalled).await.is_none() {
        return;
    }
    // A target that is down looks to the client as it would without the proxy: the connection ends.
    let Ok(server) = TcpStream::connect(target).await else { return };
    for side in [&client, &server] {
        // Small messages are sent at once, as they came.
        let _ = side.set_nodelay(true);
    }
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    tokio::join!(forward(client_in, server_out, stalled.clone()), forward(server_in, client_out, stalled),);
}

async fn forward(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut stalled: watch::Receiver<bool>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if passes(&mut stalled).await.is_none() || to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
    // The end of one direction is forwarded like everything else; dropping this half notifies the other side.
    let _ = passes(&mut stalled).await;
}

/// Waits until the proxy is not stalled; `None` when it is gone.
async fn passes(stalled: &mut watch::Receiver<bool>) -> Option<()> {
    stalled.wait_for(|stalled| !stalled).await.ok().map(drop)
}
