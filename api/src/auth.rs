//! Authentication by keys and tokens, and the check of what the operation needs.

use crate::access::AccessTable;
use crate::api::Shared;
use crate::principals::{FoundPrincipal, until};
use crate::reply::{Answer, Failure};
use crate::request::sent_tenant;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::IntoResponse;
use std::net::IpAddr;
use std::sync::Arc;
use turnstone_domain::principal::Principal;
use turnstone_ojs::OjsError;

/// The state of the guard.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) app: Shared,
    pub(crate) access: Arc<AccessTable>,
}

/// Lets a request pass whose principal may use the operation, or that needs none.
pub(crate) async fn guard(State(on): State<Guarded>, mut request: Request, next: Next) -> Answer {
    let route = request.extensions().get::<MatchedPath>();
    let needed = route.and_then(|route| on.access.of_operation(request.method(), route.as_str()));
    if needed.is_some_and(|needed| needed.is_open()) {
        return Ok(next.run(request).await);
    }
    let presented = presented(request.headers());
    let known = match on.app.principals.find(presented).await {
        Ok(known) => known,
        Err(Failure(error)) if error.status == 401 => {
            let mut refusal = Failure(error).into_response();
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return Ok(refusal);
        }
        Err(failure) => return Err(failure),
    };
    if known.principal.is_local() {
        refuse_other_sites(request.headers())?;
    }
    let caller = known.caller();
    if let Some(peer) = &known.peer
        && !peer.may(request.method(), request.uri().path())
    {
        let hint = "A peer may read agents, engage them, and read engagements.";
        let message = "This key is another server's, and such may not do this.";
        return Err(Failure(OjsError::new(403, "forbidden", message, hint)));
    }
    let principal = narrowed(&known, request.headers())?;
    if let Some(needed) = needed {
        needed.check(&principal)?;
    }
    request.extensions_mut().insert(caller);
    request.extensions_mut().insert(principal);
    let response = next.run(request).await;
    Ok(match &known.held {
        Some(held) => until(&on.app.principals.keyring, held, response),
        None => response,
    })
}

/// Returns the token of the header `Authorization: Bearer <token>`.
fn presented(headers: &HeaderMap) -> Option<&str> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok())?;
    let (scheme, key) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

/// Returns the principal with the tenant of the header: one of the fleet takes the place of that tenant for the request.
///
/// # Errors
/// 403 when a tenant names another one.
fn narrowed(known: &FoundPrincipal, headers: &HeaderMap) -> Result<Arc<Principal>, Failure> {
    let principal = &known.principal;
    match (sent_tenant(headers)?, &principal.tenant) {
        (None, _) => Ok(Arc::clone(principal)),
        (Some(sent), Some(own)) if sent == *own => Ok(Arc::clone(principal)),
        (Some(sent), None) => Ok(Arc::new(Principal { tenant: Some(sent), ..(**principal).clone() })),
        (Some(_), Some(own)) => {
            let message = format!(
                "{} belongs to tenant {own}, and the header X-OJS-Tenant names another one.",
                principal.name
            );
            let hint = "Leave the header out, or use a key of that tenant.";
            Err(OjsError::new(403, "forbidden", message, hint).into())
        }
    }
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
}
