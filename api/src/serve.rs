//! Listening and draining.

use axum::Router;
use axum::serve::ListenerExt;
use std::future::IntoFuture;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Connections that have not ended this long after the drain began are closed.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves until `shutdown`, then finishes the requests in flight. Use the token of [`crate::Api`], so that event
/// streams end as well.
///
/// # Errors
/// When the listener itself fails.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let listener = listener.tap_io(|stream| {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
    });
    let serving = axum::serve(listener, router).with_graceful_shutdown(shutdown.clone().cancelled_owned());
    tokio::select! {
        ended = serving.into_future() => ended,
        () = async { shutdown.cancelled().await; tokio::time::sleep(DRAIN).await } => {
            tracing::warn!(seconds = DRAIN.as_secs(), "some connections did not end in time and were closed");
            Ok(())
        }
    }
}
