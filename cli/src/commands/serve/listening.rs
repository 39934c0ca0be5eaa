//! The listener of the API, and its access rules.

use super::open_files;
use crate::config::Config;
use crate::failure::Failure;
use anyhow::Context as _;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpListener;
use turnstone_api::{Caps, ConfiguredKeys, Issuer, IssuerConfig, Peer, ServeLimits, Tls};
use turnstone_domain::agent::FanOutRules;
use turnstone_domain::principal::check_secret;
use turnstone_domain::review::SeparateDuties;
use turnstone_ojs::attest::{PublicKey, Signer};
use turnstone_telemetry::{Secret, SecretRef};

/// An address that is listened on, and the keys that open it.
#[derive(Debug)]
pub struct Listening {
    /// The listener.
    pub listener: TcpListener,
    /// Its address.
    pub address: SocketAddr,
    /// A client must present one of these; without any, every client that can reach the address has access.
    pub keys: ConfiguredKeys,
    /// The issuers whose tokens are accepted.
    pub issuers: Vec<Issuer>,
    /// The most that each tenant may create.
    pub caps: Caps,
    /// The most failed logins of one address per minute.
    pub failed_logins_per_minute: u32,
    /// The key that signs receipts, if one is configured.
    pub attest_key: Option<Signer>,
    /// The keys of other installations whose exports are verified.
    pub trusted_keys: Vec<PublicKey>,
    /// True if clients may reset the server, which deletes everything.
    pub enable_reset: bool,
    /// True if a job of an agent must name a registered agent.
    pub require_agent: bool,
    /// The bounds for delegations.
    pub fan_out: FanOutRules,
    /// True if webhooks may name addresses outside of the public internet.
    pub private_webhooks: bool,
    /// The certificate of the API; without it, the API uses plain HTTP.
    pub tls: Option<Tls>,
    /// The hosts whose agents may be named.
    pub remote_hosts: Vec<String>,
    /// The users and groups who may be named as reviewers; `None` is any user.
    pub reviewers: Option<Vec<String>>,
    /// The agents for whose jobs the submitting principal may not answer reviews.
    pub separate_duties: SeparateDuties,
    /// The currency of the price table, if there is one.
    pub currency: Option<String>,
    /// The most clients at once, and their time limits.
    pub limits: ServeLimits,
}

impl Listening {
    /// Listens on the configured address, unless other machines could then use it without a key. `slots` are the turns
    /// of this process, whose connections need open files.
    ///
    /// # Errors
    /// A key cannot be found, the address would be open, or it cannot be listened on. Also when other machines could
    /// reset the server.
    pub async fn start(config: &Config, enable_reset: bool, slots: u32) -> anyhow::Result<Self> {
        let api_keys = keys(config)?;
        let keys = ConfiguredKeys::new(&api_keys, &peers(config)?);
        let issuers = issuers(config)?;
        let attest_key = attest_key(config)?;
        let trusted_keys = trusted_keys(config)?;
        let bind = config.server.bind;
        if enable_reset && !bind.ip().is_loopback() {
            let problem =
                format!("--enable-reset is refused on {bind}: other machines could delete all data");
            let hint = "listen on this machine alone with --bind 127.0.0.1:8080, or leave the flag out";
            return Err(Failure::usage(problem).hint(hint).into());
        }
        let needs_key = !api_keys.is_empty() || !issuers.is_empty();
        turnstone_api::check_exposure(bind, needs_key).map_err(|error| Failure::usage(error.to_string()))?;
        let tls = tls(config)?;
        if tls.is_none() && !bind.ip().to_canonical().is_loopback() {
            tracing::warn!(%bind, "keys and inputs travel in the clear; give [server.tls] a certificate, or put a proxy with TLS before it");
        }
        let limits = limits(config, slots);
        let listener =
            TcpListener::bind(bind).await.map_err(|error| cannot_listen("server.bind", bind, &error))?;
        let address = listener.local_addr().context("the listener has no address")?;
        let private_webhooks = config.webhooks.allow_private;
        let remote_hosts = config.remote.host_names();
        Ok(Self {
            listener,
            address,
            keys,
            issuers,
            caps: config.caps,
            failed_logins_per_minute: config.server.failed_logins_per_minute,
            attest_key,
            trusted_keys,
            enable_reset,
            require_agent: config.agents.require_agent,
            fan_out: config.agents.fan_out(),
            private_webhooks,
            tls,
            remote_hosts,
            reviewers: config.reviews.names(),
            separate_duties: config.reviews.duties(),
            currency: config.prices.values().next().map(|price| price.currency.clone()),
            limits,
        })
    }

    /// Its address for clients on this machine.
    #[must_use]
    pub fn url(&self) -> String {
        url_of(self.address, if self.tls.is_some() { "https" } else { "http" })
    }
}

/// Returns the keys of the configuration.
///
/// # Errors
/// A reference cannot be resolved, or a key is too short to be random.
pub fn keys(config: &Config) -> Result<Vec<Secret>, Failure> {
    let wrong = |problem: String| {
        Failure::usage(format!("`server.api_keys`: {problem}"))
            .hint("make a key of 32 random bytes: `openssl rand -hex 32`")
    };
    let resolve = |key: &SecretRef| {
        let secret =
            key.resolve().map_err(|problem| Failure::usage(format!("`server.api_keys`: {problem}")))?;
        check_secret(secret.expose()).map_err(|why| wrong(format!("{key} {why}")))?;
        Ok(secret)
    };
    config.server.api_keys.iter().map(resolve).collect()
}

/// Returns the issuers of `[server.issuers.<name>]`.
///
/// # Errors
/// A section cannot work, or two are for the same issuer.
pub fn issuers(config: &Config) -> Result<Vec<Issuer>, Failure> {
    let mut issuers = Vec::new();
    for (name, section) in &config.server.issuers {
        let same = |(other, of): &(&String, &IssuerConfig)| *other != name && of.issuer == section.issuer;
        if let Some((other, _)) = config.server.issuers.iter().find(same) {
            let problem =
                format!("`server.issuers.{name}.issuer` is that of `{other}` too; an issuer has one section");
            return Err(Failure::usage(problem));
        }
        issuers.push(Issuer::from_config(name, section).map_err(Failure::usage)?);
    }
    Ok(issuers)
}

/// Raises the limit of open files as far as this process needs it, and returns the limits of its connections.
fn limits(config: &Config, slots: u32) -> ServeLimits {
    let server = &config.server;
    open_files::allow(slots, server.max_connections);
    ServeLimits {
        connections: open_files::connections(slots, server.max_connections),
        header: Duration::from_millis(server.header_timeout_ms),
        body: Duration::from_millis(server.body_timeout_ms),
        idle: Duration::from_millis(server.idle_timeout_ms),
        ..ServeLimits::default()
    }
}

/// Returns certificate and key of `[server.tls]`.
///
/// # Errors
/// They cannot be read, or do not belong together.
pub fn tls(config: &Config) -> Result<Option<Tls>, Failure> {
    let Some(files) = &config.server.tls else { return Ok(None) };
    Tls::load(&files.cert, &files.key).map(Some).map_err(|problem| {
        Failure::usage(format!("[server.tls]: {problem}"))
            .hint("`cert` is the certificate with those of its authorities below it, `key` its private key, both in PEM")
    })
}

/// Returns the servers of `[remote.peers.<name>]`, and their keys.
///
/// # Errors
/// A reference cannot be resolved, or two have the same key.
pub fn peers(config: &Config) -> Result<Vec<Peer>, Failure> {
    let keys = keys(config)?;
    let mut peers: Vec<Peer> = Vec::new();
    for (name, peer) in &config.remote.peers {
        let wrong = |problem: String| Failure::usage(format!("`remote.peers.{name}.key`: {problem}"));
        let key = peer.key.resolve().map_err(wrong)?;
        if keys.contains(&key) || peers.iter().any(|other| other.key == key) {
            return Err(wrong("is the key of another client too; a peer needs one of its own".to_owned()));
        }
        check_secret(key.expose()).map_err(|why| wrong(why.to_owned()))?;
        peers.push(Peer {
            name: name.clone(),
            key,
            tenant: peer.tenant.clone(),
            agents: peer.agents.clone(),
            users: peer.users.clone(),
        });
    }
    Ok(peers)
}

/// Returns the configured key that signs receipts.
///
/// # Errors
/// The reference cannot be resolved, or its value is no key.
pub fn attest_key(config: &Config) -> Result<Option<Signer>, Failure> {
    let wrong = |problem: String| Failure::usage(format!("`attest.key`: {problem}"));
    let Some(key) = &config.attest.key else { return Ok(None) };
    let secret = key.resolve().map_err(wrong)?;
    Signer::from_seed(secret.expose()).map(Some).map_err(wrong)
}

/// Returns the public keys that verify exports of other installations.
///
/// # Errors
/// One is no key.
pub fn trusted_keys(config: &Config) -> Result<Vec<PublicKey>, Failure> {
    let read = |key: &String| {
        let wrong = |why: String| Failure::usage(format!("`attest.trusted`: `{key}` {why}"));
        PublicKey::read(key)
            .map_err(|why| wrong(why).hint("GET /ojs/v1/attest/keys of the other server lists them"))
    };
    config.attest.trusted.iter().map(read).collect()
}

/// Returns the address under which clients on this machine reach the listener.
fn url_of(mut address: SocketAddr, scheme: &str) -> String {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    format!("{scheme}://{address}")
}

/// Returns why the address of this key cannot be listened on. A port that another process uses is free once that
/// process ends; every other address is wrong.
#[must_use]
pub fn cannot_listen(key: &str, bind: SocketAddr, error: &io::Error) -> Failure {
    let problem = format!("`{key}`: {bind} cannot be listened on: {error}");
    match error.kind() {
        ErrorKind::AddrInUse => Failure::failed(problem).hint(
            "another server is there; stop it, or take another port (0 takes a free one) with --bind or --metrics-bind",
        ),
        _ => Failure::usage(problem).hint("name an address of this machine: ADDR:PORT"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_sent_to_an_address_that_can_be_reached() {
        for (bound, url) in [
            ("127.0.0.1:81", "http://127.0.0.1:81"),
            ("0.0.0.0:81", "http://127.0.0.1:81"),
            ("[::]:81", "http://[::1]:81"),
            ("192.168.1.9:81", "http://192.168.1.9:81"),
        ] {
            assert_eq!(url_of(bound.parse().unwrap(), "http"), url);
        }
    }
}
