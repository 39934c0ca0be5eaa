//! The HTTP clients of tests, for servers of this machine.

use reqwest::{Client, ClientBuilder};

/// Builds a client that uses no proxy and trusts no certificate: parsing those of the system takes longer
/// than most tests.
pub fn client_builder() -> ClientBuilder {
    Client::builder().no_proxy().tls_certs_only([])
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
