//! HTTP clients for calls that leave the process: models, tools, webhooks.
//!
//! Clients follow no redirect, use no proxy of the environment, send no referer and never retry by themselves.
//! [`PublicResolver`] restricts a client to public addresses. [`OpenResolver`] is for clients that may reach private ones.
//!
//! ```text
//!  model, tool, webhook ─▶ client ─ PublicResolver ─▶ public addresses
//!                             ├──── OpenResolver ───▶ any but metadata services
//!                 tool ─▶ client ─ OwnResolver ────▶ any of these but this server
//! ```

mod own;

pub use own::{OwnAddresses, OwnResolver};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::net::SocketAddr;
use std::sync::OnceLock;
use turnstone_domain::address::{only_public, without_metadata};

/// Returns a builder of clients that trust the root certificates of this machine.
///
/// A machine without root certificates (a slim container) can still call `http` URLs: their absence is logged once,
/// as a warning.
pub fn client_builder() -> ClientBuilder {
    match tls() {
        Some(tls) => strict().tls_backend_preconfigured(tls.clone()),
        None => strict().tls_certs_only([]),
    }
}

/// Returns a builder as [`client_builder`] does, for clients whose certificates the caller sets. It reads the root
/// certificates of the machine when a client is built.
pub fn own_certificates_builder() -> ClientBuilder {
    install_provider();
    strict()
}

fn strict() -> ClientBuilder {
    Client::builder().redirect(Policy::none()).no_proxy().referer(false).retry(reqwest::retry::never())
}

/// Installs the TLS provider, unless another part of the process has installed one.
fn install_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The TLS settings of every client. Reading the machine's certificates takes longer than all else that a client needs,
/// so the process does it once.
fn tls() -> Option<&'static ClientConfig> {
    static TLS: OnceLock<Option<ClientConfig>> = OnceLock::new();
    let tls = TLS.get_or_init(|| {
        install_provider();
        match ClientConfig::builder().with_platform_verifier() {
            Ok(builder) => {
                let mut tls = builder.with_no_client_auth();
                tls.alpn_protocols = vec![b"http/1.1".to_vec()];
                Some(tls)
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "no root certificates: calls to https URLs will fail; install the package ca-certificates"
                );
                None
            }
        }
    });
    tls.as_ref()
}

/// The system's resolver, restricted to public addresses. It checks the addresses of a name when the connection is made,
/// so that a name that changes after an earlier check gains nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(only_public(&name, found)?.into_iter()) as Addrs)
        })
    }
}

/// The system's resolver without the metadata services of clouds, for clients that may reach private addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenResolver;

impl Resolve for OpenResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let name = name.as_str().to_owned();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            Ok(Box::new(without_metadata(&name, found)?.into_iter()) as Addrs)
        })
    }
}
