//! HTTP calls that leave the worker: building clients, describing errors, and bounding answers.

use futures::StreamExt;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Certificate, Client, ClientBuilder, Response};
use serde_json::Value;
use std::error::Error;
use std::io;
use std::time::Duration;
use turnstone_outbound::{
    OpenResolver, OwnAddresses, PublicResolver, client_builder, own_certificates_builder,
};
use turnstone_telemetry::{propagation, redact};
use url::Url;

/// The longest that making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Idle connections are closed after this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns a client for addresses in the operator's configuration: no redirects, no proxy from the
/// environment.
///
/// # Errors
/// A sentence with the reason why the client cannot be built.
pub fn open_client() -> Result<Client, String> {
    build(client_builder().dns_resolver(OpenResolver))
}

/// Returns a client that resolves names to public addresses only. URLs must pass
/// [`check_url`](crate::tool::address_guard::check_url) as well, since an address literal is never resolved.
///
/// # Errors
/// A sentence with the reason why the client cannot be built.
pub fn guarded_client() -> Result<Client, String> {
    build(client_builder().dns_resolver(PublicResolver))
}

/// Returns a client for a URL of a tool. It never connects to this server itself; unless `private`, it resolves names to
/// public addresses only. `usual` is the client for ports on which this server does not listen.
///
/// # Errors
/// A sentence: the URL is an address of this server, or no client can be built.
pub fn client_avoiding(
    own: &OwnAddresses,
    url: &Url,
    private: bool,
    usual: &Client,
) -> Result<Client, String> {
    own.check(url)?;
    match own.has_port(url) {
        true => build(client_builder().dns_resolver(own.resolver(url, !private))),
        false => Ok(usual.clone()),
    }
}

/// Returns a client that trusts these authorities besides those of the machine. Unless `private`, it resolves names to
/// public addresses only. Only with `https_only` it refuses to connect without TLS.
///
/// # Errors
/// A sentence with the reason why the client cannot be built.
pub fn trusting_client(
    authorities: &[Certificate],
    private: bool,
    https_only: bool,
) -> Result<Client, String> {
    let builder = match authorities {
        [] => client_builder(),
        _ => own_certificates_builder().tls_certs_merge(authorities.iter().cloned()),
    };
    build(resolving(builder.https_only(https_only), private))
}

/// Returns a client that proves itself by a key and a certificate in PEM, and trusts this authority, or else those of the
/// machine. It is for this URL: unless `private`, it resolves names to public addresses only, and never to this server.
///
/// # Errors
/// A sentence: the files do not fit, or no client can be built.
pub fn proving_client(
    proof: &[u8],
    authority: Option<&[u8]>,
    (own, url, private): (&OwnAddresses, &Url, bool),
) -> Result<Client, String> {
    let identity = reqwest::Identity::from_pem(proof)
        .map_err(|error| format!("the key and the certificate cannot be used: {}", describe(&error)))?;
    let authorities = authority.map(Certificate::from_pem_bundle).transpose();
    let authorities =
        authorities.map_err(|error| format!("the authority cannot be used: {}", describe(&error)))?;
    own.check(url)?;
    let builder = own_certificates_builder().identity(identity).dns_resolver(own.resolver(url, !private));
    build(match authorities {
        Some(authorities) => builder.tls_certs_only(authorities),
        None => builder,
    })
}

/// Returns a builder whose clients resolve names to the addresses that they may reach.
fn resolving(builder: ClientBuilder, private: bool) -> ClientBuilder {
    if private { builder.dns_resolver(OpenResolver) } else { builder.dns_resolver(PublicResolver) }
}

/// Builds a client with the limits of all clients of the worker.
fn build(builder: ClientBuilder) -> Result<Client, String> {
    builder
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .user_agent(concat!("turnstone/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| format!("the HTTP client cannot be built: {}", describe(&error)))
}

/// Returns the trace context of a request that leaves now.
#[must_use]
pub fn trace_headers() -> HeaderMap {
    let carried = propagation::outgoing().into_iter();
    carried
        .filter_map(|(name, value)| {
            Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
        })
        .collect()
}

/// The words of the standard library for a name that the resolver does not know.
const LOOKUP_FAILED: &str = "failed to lookup address information";

/// The error for a server to which no connection could be made.
pub const CANNOT_CONNECT: &str = "cannot connect";

/// Returns the reason why a server's certificate is refused, if that prevented the connection.
#[must_use]
pub fn certificate_problem(error: &reqwest::Error) -> Option<String> {
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(refused @ rustls::Error::InvalidCertificate(_)) = inner.downcast_ref() {
            return Some(refused.to_string());
        }
        // The sources of an I/O error do not include the error inside it.
        cause = match inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(carried) => Some(carried),
            None => inner.source(),
        };
    }
    None
}

/// Returns the reason why no connection was made, if that is the error: in the words of the field where there are some. It omits
/// the URL, which may hold a secret.
#[must_use]
pub fn connect_problem(error: &reqwest::Error) -> Option<String> {
    if !error.is_connect() || error.is_timeout() {
        return None;
    }
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let known = causes.into_iter().find_map(|cause| {
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::ConnectionRefused) => return Some("connection refused"),
            Some(io::ErrorKind::HostUnreachable) => return Some("host unreachable"),
            Some(io::ErrorKind::NetworkUnreachable) => return Some("network unreachable"),
            _ => {}
        }
        cause.to_string().contains(LOOKUP_FAILED).then_some("unknown host")
    });
    let described = describe(error);
    let words = described.strip_prefix(CANNOT_CONNECT).and_then(|rest| rest.strip_prefix(": "));
    Some(known.or(words).unwrap_or(&described).to_owned())
}

/// Returns an error with its causes in one sentence. It omits the URL, which may hold a secret, and redacts
/// secrets.
#[must_use]
pub fn describe(error: &reqwest::Error) -> String {
    if let Some(why) = certificate_problem(error) {
        return excerpt(&format!("{CANNOT_CONNECT}: the server's certificate is refused: {why}"), 300);
    }
    let mut text = if error.is_timeout() {
        "timed out".to_owned()
    } else if error.is_connect() {
        CANNOT_CONNECT.to_owned()
    } else if error.is_body() || error.is_decode() {
        "the connection was lost while the answer was read".to_owned()
    } else if error.is_builder() {
        "the request cannot be built".to_owned()
    } else {
        "the connection was lost before an answer came".to_owned()
    };
    let mut last = String::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        last = inner.to_string();
        cause = inner.source();
    }
    if !last.is_empty() {
        text = format!("{text}: {last}");
    }
    excerpt(&text, 300)
}

/// Returns the first `limit` characters of a text on one line, with secrets redacted.
#[must_use]
pub fn excerpt(text: &str, limit: usize) -> String {
    let line = redact(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns the last `limit` characters of a text on one line, with secrets redacted: the output of a program
/// before it failed.
#[must_use]
pub fn ending(text: &str, limit: usize) -> String {
    let line = redact(text).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().rev().nth(limit.saturating_sub(1)) {
        Some((start @ 1.., _)) => format!("…{}", &line[start..]),
        _ => line,
    }
}

/// The reason why a body could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The connection was lost, for this reason.
    #[error("{0}")]
    Lost(String),
    /// The body is larger than allowed.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
}

/// Reads a body up to `limit` bytes.
///
/// # Errors
/// [`BodyError::TooLarge`] as soon as the limit is passed, for every value of `Content-Length`.
pub async fn read_body(response: Response, limit: usize) -> Result<Vec<u8>, BodyError> {
    let (body, whole) = read_start(response, limit).await?;
    if whole { Ok(body) } else { Err(BodyError::TooLarge(limit)) }
}

/// Reads at most `limit` bytes of a body; returns true with them if that was all of it.
///
/// # Errors
/// [`BodyError::Lost`].
pub async fn read_start(response: Response, limit: usize) -> Result<(Vec<u8>, bool), BodyError> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| BodyError::Lost(describe(&error)))?;
        let room = limit - body.len();
        if chunk.len() > room {
            body.extend_from_slice(&chunk[..room]);
            return Ok((body, false));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, true))
}

/// Returns the `Content-Type` of an answer; empty when it has none.
#[must_use]
pub fn content_type(response: &Response) -> String {
    let header = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    header.unwrap_or_default().to_owned()
}

/// Returns the media type of an answer in lower case without parameters; empty when it has none.
#[must_use]
pub fn media_type(response: &Response) -> String {
    essence(&content_type(response))
}

/// Returns the media type in a `Content-Type`, in lower case without parameters.
#[must_use]
pub fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns the `Retry-After` of an answer as milliseconds; see [`wait_ms`].
#[must_use]
pub fn retry_after_ms(response: &Response) -> Option<u64> {
    wait_ms(response.headers().get(reqwest::header::RETRY_AFTER)?.to_str().ok()?)
}

/// Returns a `Retry-After` in seconds as milliseconds; a date is not read.
pub fn wait_ms(retry_after: &str) -> Option<u64> {
    milliseconds(retry_after, 1000.0)
}

/// Returns a number of units, each of so many milliseconds, as milliseconds. Some servers send fractions.
pub fn milliseconds(sent: &str, unit: f64) -> Option<u64> {
    let number: f64 = sent.trim().parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates, and is not negative"
    )]
    (number.is_finite() && number >= 0.0).then(|| (number * unit).ceil() as u64)
}

/// Returns the codes by which the body of an answer names its error.
pub fn error_codes(body: &Value) -> Vec<&str> {
    let inside = &body["error"];
    [&inside["code"], &inside["type"], inside, &body["code"], &body["type"]]
        .into_iter()
        .filter_map(Value::as_str)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_short_line_and_never_splits_a_character() {
        assert_eq!(excerpt("a\n  b\t c", 10), "a b c");
        assert_eq!(excerpt("äöü", 2), "äö…");
        assert_eq!((ending("a\n  b", 3), ending("äöü", 2)), ("a b".to_owned(), "…öü".to_owned()));
    }
}
