//! A TCP proxy that can be cut, stalled, silenced and healed while connections run through it, or reset them at random.

use super::beside;
use super::port::Port;
use crate::wait;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// The proxy. It ends, with its connections, when it is dropped.
pub struct TcpProxy {
    target: Mutex<SocketAddr>,
    port: Arc<Port>,
    network: watch::Sender<Network>,
    resets: Arc<Resets>,
    serving: Mutex<Option<Serving>>,
}

/// The state of the network between both sides.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Network {
    stalled: bool,
    silent: bool,
    /// The number of silences so far. A connection of an earlier one carries nothing any more.
    silences: u64,
}

/// Which of the messages of clients reset their connections.
#[derive(Default)]
struct Resets {
    /// One of this many, or none if it is 0.
    one_in: AtomicU64,
    messages: AtomicU64,
}

impl Resets {
    /// Returns true if this message resets its connection. The choice looks random, and is the same in each run.
    fn next(&self) -> bool {
        let one_in = self.one_in.load(Ordering::Relaxed);
        let number = self.messages.fetch_add(1, Ordering::Relaxed);
        one_in > 0 && (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).is_multiple_of(one_in)
    }
}

struct Serving {
    cut: CancellationToken,
    done: AbortOnDropHandle<()>,
}

impl TcpProxy {
    /// Starts a proxy to `target` that forwards everything.
    pub async fn start(target: SocketAddr) -> Self {
        let port = Arc::new(beside(Port::reserve).await);
        let (network, resets, serving) = (watch::Sender::default(), Arc::default(), Mutex::default());
        let proxy = Self { target: Mutex::new(target), port, network, resets, serving };
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
        self.network.send_modify(|network| network.stalled = true);
        self.serve().await;
    }

    /// Lets every connection carry nothing for ever, the old ones and those that are made until [`TcpProxy::heal`].
    /// Neither side is notified, and both keep their half of each connection.
    pub async fn silence(&self) {
        self.network.send_modify(|network| (network.silent, network.silences) = (true, network.silences + 1));
        self.serve().await;
    }

    /// Resets the connection of one in so many messages of clients, before it arrives; of none with 0.
    pub fn reset_one_in(&self, messages: u64) {
        self.resets.one_in.store(messages, Ordering::Relaxed);
    }

    /// Forwards everything again, except on connections that were silenced.
    pub async fn heal(&self) {
        self.network.send_modify(|network| (network.stalled, network.silent) = (false, false));
        self.serve().await;
    }

    /// Drops every connection, and forwards new ones to another target, as a virtual address does at a failover.
    pub async fn switch_to(&self, target: SocketAddr) {
        self.cut().await;
        *self.target.lock().unwrap_or_else(PoisonError::into_inner) = target;
        self.heal().await;
    }

    async fn serve(&self) {
        if self.serving().is_some() {
            return;
        }
        let listener = TcpListener::bind(self.addr()).await.expect("the reserved port");
        let cut = CancellationToken::new();
        let (network, resets) = (self.network.subscribe(), Arc::clone(&self.resets));
        let target = *self.target.lock().unwrap_or_else(PoisonError::into_inner);
        let serving = accept(listener, target, network, resets, cut.clone());
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
    network: watch::Receiver<Network>,
    resets: Arc<Resets>,
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
                    connections.spawn(connect(client, target, network.clone(), Arc::clone(&resets)));
                }
            }
        }
    }
    drop(listener);
    connections.shutdown().await;
}

/// Forwards one connection until one side ends it or breaks, or a message resets it.
async fn connect(
    mut client: TcpStream,
    target: SocketAddr,
    network: watch::Receiver<Network>,
    resets: Arc<Resets>,
) {
    let born = *network.borrow();
    // A silenced connection ends with the proxy.
    let mut line = Line { network, silences: if born.silent { None } else { Some(born.silences) } };
    if line.passes().await.is_none() {
        return;
    }
    // A target that is down looks to the client as it would without the proxy: the connection ends.
    let Ok(mut server) = TcpStream::connect(target).await else { return };
    for side in [&client, &server] {
        // Small messages are sent at once, as they came.
        let _ = side.set_nodelay(true);
    }
    let reset = CancellationToken::new();
    let (client_in, client_out) = client.split();
    let (server_in, server_out) = server.split();
    let up = forward(client_in, server_out, line.clone(), Some((&resets, &reset)));
    let down = forward(server_in, client_out, line, None);
    tokio::select! {
        _ = async { tokio::join!(up, down) } => {}
        () = reset.cancelled() => {
            for side in [&client, &server] {
                side.set_zero_linger().expect("an open socket");
            }
        }
    }
}

async fn forward(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut line: Line,
    resets: Option<(&Resets, &CancellationToken)>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        if line.passes().await.is_none() {
            return;
        }
        if let Some((_, reset)) = resets.filter(|(resets, _)| resets.next()) {
            return reset.cancel();
        }
        if to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
    // The end of one direction is forwarded like everything else.
    if line.passes().await.is_some() {
        let _ = to.shutdown().await;
    }
}

/// The network as one connection sees it.
#[derive(Clone)]
struct Line {
    network: watch::Receiver<Network>,
    /// The number of silences before the connection was made; `None` if it was made in one.
    silences: Option<u64>,
}

impl Line {
    /// Waits until the connection carries data, for ever if it was silenced; `None` when the proxy is gone.
    async fn passes(&mut self) -> Option<()> {
        let silences = self.silences;
        let carries = |network: &Network| Some(network.silences) == silences && !network.stalled;
        self.network.wait_for(carries).await.ok().map(drop)
    }
}
