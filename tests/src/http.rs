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
