//! Listening and draining.

use crate::connection::{Activity, HeldBody, TimedBody, TimedConnection};
use crate::tls::Tls;
use async_recursion::async_recursion as boxed;
use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

/// Connections that have not ended this long after the drain began are closed.
const DRAIN: Duration = Duration::from_secs(10);
/// The pause after the listener failed, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
/// The answer to a connection above the limit.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// The limits of the connections of one listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServeLimits {
    /// The most connections that are open at once; further ones receive 503 and are closed.
    pub connections: usize,
    /// The time limit of a TLS handshake. Also that of a request's head, from its first byte or from the begin of the
    /// connection.
    pub header: Duration,
    /// The longest pause of a body. After that time it must also arrive at 1 KiB/s on average.
    pub body: Duration,
    /// How long a connection may wait for its next request.
    pub idle: Duration,
    /// How long a client may leave pending data unread.
    pub write: Duration,
}

impl Default for ServeLimits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            header: Duration::from_secs(10),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
        }
    }
}

/// Serves, over TLS if there is any, until `shutdown`, then finishes the requests in flight. Use the token of
/// [`crate::Api`], so that event streams end as well. Clients that exceed the `limits` are disconnected.
///
/// # Errors
/// When the listener itself fails.
#[boxed]
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    router: Router,
    limits: ServeLimits,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let (places, open) = (Arc::new(Semaphore::new(limits.connections)), TaskTracker::new());
    // Ends the connections with this function, however it ends.
    let over = CancellationToken::new();
    let _closes = over.clone().drop_guard();
    let mut is_full = false;
    while let Some(stream) = shutdown.run_until_cancelled(accepted(&listener)).await {
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            refuse(&stream, tls.is_some(), std::mem::replace(&mut is_full, true));
            continue;
        };
        is_full = false;
        let (over, answered) =
            (over.clone(), one(stream, tls.clone(), router.clone(), limits, shutdown.clone()));
        open.spawn(async move {
            let _place = place;
            over.run_until_cancelled(answered).await;
        });
    }
    // A client that connects now is refused by the system instead of waiting.
    drop(listener);
    open.close();
    if tokio::time::timeout(DRAIN, open.wait()).await.is_err() {
        tracing::warn!(seconds = DRAIN.as_secs(), "some connections did not end in time and were closed");
    }
    Ok(())
}

/// Returns the next connection. After a failure of the listener it tries again after a pause.
async fn accepted(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => tracing::warn!(%error, "a connection could not be accepted"),
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// Answers 503 where no handshake is needed. The system takes these few bytes at once, or the client gets no response.
fn refuse(stream: &TcpStream, is_tls: bool, was_logged: bool) {
    if !was_logged {
        tracing::warn!("all connections are taken; further ones are refused with 503");
    }
    if !is_tls {
        let _ = stream.try_write(FULL);
    }
}

#[boxed]
async fn one(
    stream: TcpStream,
    tls: Option<Tls>,
    router: Router,
    limits: ServeLimits,
    shutdown: CancellationToken,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    let client = stream.peer_addr().ok();
    match tls {
        None => requests((stream, client), router, limits, shutdown).await,
        Some(tls) => encrypted(tls, (stream, client), router, limits, shutdown).await,
    }
}

/// Does the handshake with a client and answers its requests. Closes the connection when the handshake fails or takes longer
/// than `limits.header`.
#[boxed]
async fn encrypted(
    tls: Tls,
    (stream, client): (TcpStream, Option<SocketAddr>),
    router: Router,
    limits: ServeLimits,
    shutdown: CancellationToken,
) {
    match tokio::time::timeout(limits.header, tls.accept(stream)).await {
        Ok(Ok(stream)) => requests((stream, client), router, limits, shutdown).await,
        Ok(Err(error)) => tracing::debug!(%error, "a client did not speak TLS"),
        Err(_) => tracing::debug!("a client did not finish its TLS handshake in time"),
    }
}

/// Answers the requests of a connection until it ends. Boxed like [`encrypted`], so that a connection without TLS takes no
/// room for the state of one with it.
#[boxed]
async fn requests<I>(
    (stream, client): (I, Option<SocketAddr>),
    router: Router,
    limits: ServeLimits,
    shutdown: CancellationToken,
) where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Activity::default());
    let stream = TimedConnection::new(stream, Arc::clone(&activity), &limits);
    let service = service_fn(move |request: Request<Incoming>| {
        let held = activity.begin();
        let mut request = request.map(|body| Body::new(TimedBody::new(body, limits.body)));
        if let Some(client) = client {
            request.extensions_mut().insert(ConnectInfo(client));
        }
        let answering = router.clone().call(request);
        async move {
            let response = answering.await?;
            Ok::<_, Infallible>(response.map(|body| HeldBody::new(body, held)))
        }
    });
    let mut connection = pin!(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
