//! Listening and draining.

use crate::patience::Patient;
use crate::tls::Tls;
use axum::Router;
use axum::serve::ListenerExt;
use futures::FutureExt;
use std::future::IntoFuture;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Connections that have not ended this long after the drain began are closed.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves, over TLS if there is any, until `shutdown`, then finishes the requests in flight. Use the token of [`crate::Api`], so that event
/// streams end as well. A client that takes nothing of what waits for it for as long as `patience` is let go.
///
/// # Errors
/// When the listener itself fails.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Tls>,
    router: Router,
    patience: Duration,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let over = shutdown.clone().cancelled_owned();
    let serving = match tls {
        Some(tls) => {
            let listener = Patient { listener: tls.listen(listener)?, patience };
            axum::serve(listener, router).with_graceful_shutdown(over).into_future().boxed()
        }
        None => {
            let listener = listener.tap_io(|stream| {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(%error, "a connection keeps its delay");
                }
            });
            let listener = Patient { listener, patience };
            axum::serve(listener, router).with_graceful_shutdown(over).into_future().boxed()
        }
    };
    tokio::select! {
        ended = serving => ended,
        () = async { shutdown.cancelled().await; tokio::time::sleep(DRAIN).await } => {
            tracing::warn!(seconds = DRAIN.as_secs(), "some connections did not end in time and were closed");
            Ok(())
        }
    }
}
