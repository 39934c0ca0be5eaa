//! Reads the public keys of an issuer: its discovery document (OpenID Connect Discovery 1.0 §4), and its key set (RFC
//! 7517 §5).

use super::issuer::IssuerConfig;
use reqwest::header::{ACCEPT, USER_AGENT};
use reqwest::{Client, Url};
use serde_json::Value;
use std::time::Duration;
use turnstone_domain::address::{check_form, check_url};
use turnstone_outbound::{OpenResolver, PublicResolver, client_builder};

/// The longest time for one document.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes of a document.
const DOCUMENT_BYTES: usize = 512 * 1024;
/// The place of the discovery document below the issuer.
const DISCOVERY: &str = "/.well-known/openid-configuration";

/// The place of an issuer's keys.
#[derive(Clone, Debug)]
pub(super) struct KeySource {
    issuer: String,
    jwks_uri: Option<Url>,
    discovery: Url,
    allow_private: bool,
    client: Client,
}

impl KeySource {
    /// # Errors
    /// A sentence that names the address that cannot be used.
    pub(super) fn of(config: &IssuerConfig) -> Result<Self, String> {
        let allow_private = config.allow_private;
        let discovery = format!("{}{DISCOVERY}", config.issuer.trim_end_matches('/'));
        let builder = client_builder().timeout(TIMEOUT).connect_timeout(TIMEOUT);
        let builder = match allow_private {
            true => builder.dns_resolver(OpenResolver),
            false => builder.dns_resolver(PublicResolver),
        };
        let client = builder.build().map_err(|_| "the HTTP client cannot be built".to_owned())?;
        Ok(Self {
            issuer: config.issuer.clone(),
            jwks_uri: config.jwks_uri.as_deref().map(|uri| checked(uri, allow_private)).transpose()?,
            discovery: checked(&discovery, allow_private)?,
            allow_private,
            client,
        })
    }

    /// Returns the key set.
    ///
    /// # Errors
    /// A sentence that says which document cannot be read, and why.
    pub(super) async fn key_set(&self) -> Result<Value, String> {
        let uri = match &self.jwks_uri {
            Some(uri) => uri.clone(),
            None => self.discovered().await?,
        };
        self.document(uri).await.map_err(|why| format!("its key set {why}"))
    }

    async fn discovered(&self) -> Result<Url, String> {
        let named = "its discovery document";
        let found = self.document(self.discovery.clone()).await.map_err(|why| format!("{named} {why}"))?;
        if found["issuer"] != self.issuer.as_str() {
            return Err(format!("{named} is that of another issuer"));
        }
        let uri = found["jwks_uri"].as_str().ok_or_else(|| format!("{named} has no jwks_uri"))?;
        checked(uri, self.allow_private)
    }

    async fn document(&self, url: Url) -> Result<Value, String> {
        let request = self.client.get(url).header(ACCEPT, "application/json");
        let request = request.header(USER_AGENT, concat!("turnstone/", env!("CARGO_PKG_VERSION")));
        let mut response = request.send().await.map_err(|error| failed(&error))?;
        if response.status() != 200 {
            return Err(format!("returned status {}", response.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(part) = response.chunk().await.map_err(|error| failed(&error))? {
            if body.len() + part.len() > DOCUMENT_BYTES {
                return Err(format!("is larger than {DOCUMENT_BYTES} bytes"));
            }
            body.extend_from_slice(&part);
        }
        serde_json::from_slice(&body).map_err(|_| "is not JSON".to_owned())
    }
}

/// Returns an address that may be called. Keys are read over TLS, unless private addresses are allowed.
fn checked(text: &str, allow_private: bool) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("`{text}` is not a URL: {error}"))?;
    let fits = if allow_private { check_form(&url) } else { check_url(&url) };
    fits.map_err(|why| format!("`{text}` cannot be used: {why}"))?;
    if !allow_private && url.scheme() != "https" {
        return Err(format!("`{text}` must begin with https, or the issuer needs allow_private = true"));
    }
    Ok(url)
}

fn failed(error: &reqwest::Error) -> String {
    let why = if error.is_timeout() {
        "did not arrive in time"
    } else if error.is_connect() {
        "cannot be reached"
    } else {
        "ended before it was complete"
    };
    why.to_owned()
}
