//! The HTTP clients and servers of tests, on this machine.

use axum::Router;
use reqwest::{Client, ClientBuilder};
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// The longest that a connection is kept for the next request. Servers close idle ones later, so a test that was held up
/// by the build of a program sends no request over a connection that is being closed.
const IDLE: Duration = Duration::from_secs(5);

/// Builds a client that uses no proxy and trusts no certificate: parsing those of the system takes longer
/// than most tests.
pub fn client_builder() -> ClientBuilder {
    Client::builder().no_proxy().tls_certs_only([]).pool_idle_timeout(IDLE)
}

/// Installs the TLS provider once; reqwest wants it even for plain HTTP.
pub fn install_crypto() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Returns a client for `http` addresses.
///
/// # Panics
/// When it cannot be built.
#[must_use]
pub fn client() -> Client {
    client_builder().build().expect("a client")
}

/// Registers an agent's document at the server of this URL.
pub async fn register(url: &str, document: &str) {
    let request = client().post(format!("{url}/agents")).header("content-type", "application/yaml");
    let answer = request.body(document.to_owned()).send().await.expect("an answer");
    let status = answer.status();
    assert!(status.is_success(), "{document}: {status} {}", answer.text().await.expect("a body"));
}

/// Serves an application at a free port; returns its address as a URL without a path.
///
/// # Panics
/// When no port is free.
pub async fn serve(app: Router) -> (String, AbortOnDropHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let serving = async move { axum::serve(listener, app).await.expect("a server of the test") };
    (url, AbortOnDropHandle::new(tokio::spawn(serving)))
}
