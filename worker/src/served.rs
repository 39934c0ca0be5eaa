//! Servers of tests.

use axum::Router;
use std::net::SocketAddr;
use tokio_util::task::AbortOnDropHandle;

/// Serves an app at a free port of this machine until the handle is dropped.
pub async fn serve(app: Router) -> (SocketAddr, AbortOnDropHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (address, AbortOnDropHandle::new(serving))
}
