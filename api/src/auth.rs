//! Authentication by API keys.

use crate::api::{App, Shared};
use crate::caller::Caller;
use crate::reply::{Answer, Failure};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::IntoResponse;
use std::net::IpAddr;
use turnstone_domain::digest;
use turnstone_ojs::OjsError;

/// Probes and the manifest answer without a key.
const OPEN_PATHS: [&str; 6] = ["/livez", "/readyz", "/ready", "/health", "/ojs/v1/health", "/ojs/manifest"];

/// Lets a request pass that carries a key or needs none.
pub(crate) async fn guard(State(app): State<Shared>, mut request: Request, next: Next) -> Answer {
    if !OPEN_PATHS.contains(&request.uri().path()) {
        let peer = presented(request.headers()).and_then(|key| peer(&app, &key));
        if let Some(caller) = peer {
            if !caller.may(request.method(), request.uri().path()) {
                let hint = "A peer may read agents, engage them, and read engagements.";
                let message = "This key is another server's, and such may not do this.";
                return Err(Failure(OjsError::new(403, "forbidden", message, hint)));
            }
            request.extensions_mut().insert(caller);
        } else if app.api.options.api_keys.is_empty() {
            refuse_other_sites(request.headers())?;
        } else if !carries_key(&app, request.headers()) {
            let mut refusal = Failure(OjsError::unauthorized()).into_response();
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Ok(refusal);
        }
    }
    Ok(next.run(request).await)
}

/// Returns the digest of the key that a request carries.
pub(crate) fn presented(headers: &HeaderMap) -> Option<String> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok())?;
    let (scheme, key) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| digest::of_text(key.trim()))
}

/// Returns the peer whose key this is; all are compared, as below.
fn peer(app: &App, presented: &str) -> Option<Caller> {
    app.api.options.peers.iter().fold(None, |found, peer| {
        match equal(presented, &digest::of_text(peer.key.expose())) {
            true => Some(Caller::Peer(peer.name.clone())),
            false => found,
        }
    })
}

fn carries_key(app: &App, headers: &HeaderMap) -> bool {
    let Some(presented) = presented(headers) else { return false };
    // Every key is compared, and digests are compared in full, so the time reveals nothing about any key.
    app.api
        .options
        .api_keys
        .iter()
        .fold(false, |found, key| found | equal(&presented, &digest::of_text(key.expose())))
}

/// Compares two texts of equal length in constant time.
fn equal(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

/// Without a key, a web page that the operator happens to visit could enqueue jobs on loopback. Browsers name the
/// page's site in `Origin`; other clients do not send it.
fn refuse_other_sites(headers: &HeaderMap) -> Result<(), Failure> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    // A foreign host name that was made to resolve to this server (DNS rebinding) is not its own.
    if !text(HOST).is_none_or(is_local) {
        let hint = "Without an API key this server answers to localhost and loopback addresses only; configure a key.";
        return Err(Failure(OjsError::new(403, "forbidden", "The request names another host.", hint)));
    }
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let site = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, site)| site);
    if site.is_some() && site == text(HOST) {
        return Ok(());
    }
    let hint = "Use the page of this server itself, or configure an API key and send it.";
    Err(Failure(OjsError::new(403, "forbidden", "The request comes from a web page of another site.", hint)))
}

/// Returns true if a `Host` header names this machine by a loopback address or as `localhost`, with or without a port.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebound_name_is_not_local() {
        for (host, local) in [
            ("localhost:8080", true),
            ("127.0.0.1:8080", true),
            ("[::1]:8080", true),
            ("127.0.0.1", true),
            ("evil.example:8080", false),
            ("localhost.evil.example", false),
            ("10.0.0.1:80", false),
        ] {
            assert_eq!(is_local(host), local, "{host}");
        }
    }

    #[test]
    fn only_the_servers_own_pages_may_call_without_a_key() {
        let allowed = |origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static("127.0.0.1:8080"));
            if let Some(origin) = origin {
                headers.insert(ORIGIN, HeaderValue::from_str(origin).unwrap());
            }
            refuse_other_sites(&headers).is_ok()
        };
        assert!(allowed(None) && allowed(Some("http://127.0.0.1:8080")));
        assert!(
            !allowed(Some("https://example.com"))
                && !allowed(Some("null"))
                && !allowed(Some("http://127.0.0.1"))
        );
    }

    #[test]
    fn comparison_needs_every_character() {
        assert!(equal("abc", "abc"));
        assert!(!equal("abc", "abd") && !equal("abc", "ab") && !equal("", "a"));
    }
}
