//! Authentication by keys and tokens, and the check of what the operation needs.

use crate::access::{Access, AccessTable};
use crate::api::Shared;
use crate::audit_chain;
use crate::principals::{FoundPrincipal, until};
use crate::reply::{Answer, Failure};
use crate::request::sent_tenant;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use turnstone_domain::principal::Principal;
use turnstone_ojs::OjsError;
use turnstone_store::audited;

/// The operation of a request whose path no operation has, in the audit.
const UNKNOWN_PATH: &str = "(no operation)";

/// The state of the guard.
#[derive(Clone)]
pub(crate) struct Guarded {
    pub(crate) app: Shared,
    pub(crate) access: Arc<AccessTable>,
}

/// Lets a request pass whose principal may use the operation, or that needs none. Changes and refused requests are
/// audited.
pub(crate) async fn guard(State(on): State<Guarded>, mut request: Request, next: Next) -> Answer {
    let route = request.extensions().get::<MatchedPath>().map(|route| route.as_str().to_owned());
    let needed = route.as_ref().and_then(|route| on.access.of_operation(request.method(), route));
    if needed.is_some_and(Access::is_open) {
        return Ok(next.run(request).await);
    }
    let client = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let sent = RequestFacts {
        method: request.method(),
        path: request.uri().path(),
        headers: request.headers(),
        from: client.map(|ConnectInfo(address)| address.ip()),
    };
    let admitted = admit(&on, needed, &sent).await;
    let (now, action) = (on.app.api.clock.now(), route.as_deref().unwrap_or(UNKNOWN_PATH));
    let (known, principal) = match admitted {
        Ok(Admitted { known, principal }) => (known, principal),
        Err(NotAdmitted { principal, failure }) => {
            let response = refusal(failure);
            if response.status().is_client_error() {
                let note = audit_chain::note(&request, action, principal.as_deref(), now);
                on.app.refused.record(&note, &response);
            }
            return Ok(response);
        }
    };
    let is_audited = audit_chain::is_audited(action) && needed.is_none_or(Access::is_audited);
    let note = audit_chain::changes(request.method())
        .then(|| Arc::new(audit_chain::note(&request, action, Some(&principal), now)));
    request.extensions_mut().insert(known.caller());
    request.extensions_mut().insert(Arc::clone(&principal));
    let response = match &note {
        Some(note) if is_audited => {
            audited(Arc::clone(note), next.run(audit_chain::digested(request, note))).await
        }
        _ => next.run(request).await,
    };
    let streams = &on.app.open_streams;
    let response = streams.admit(principal.tenant.as_deref(), on.app.api.options.caps.streams, response);
    if let Some(note) = note
        && audit_chain::is_refusal(&response, is_audited)
    {
        on.app.refused.record(&note, &response);
    }
    Ok(match &known.end {
        Some(end) => until(&on.app.principals, end, response),
        None => response,
    })
}

/// The parts of a request that decide about it.
struct RequestFacts<'a> {
    method: &'a Method,
    path: &'a str,
    headers: &'a HeaderMap,
    /// The client's address.
    from: Option<IpAddr>,
}

/// A request whose principal may use the operation.
struct Admitted {
    known: FoundPrincipal,
    /// With the tenant of the request.
    principal: Arc<Principal>,
}

/// A refused request.
struct NotAdmitted {
    /// None while it is not known.
    principal: Option<Arc<Principal>>,
    failure: Failure,
}

async fn admit(
    on: &Guarded,
    needed: Option<&Access>,
    sent: &RequestFacts<'_>,
) -> Result<Admitted, NotAdmitted> {
    let unknown = |failure| NotAdmitted { principal: None, failure };
    let known = on.app.principals.find(presented(sent.headers), sent.from).await.map_err(unknown)?;
    let checked = check(&known, needed, sent);
    checked
        .map_err(|failure| NotAdmitted { principal: Some(Arc::clone(&known.principal)), failure })
        .map(|principal| Admitted { known, principal })
}

/// Checks a known principal, and returns it with the tenant of the request.
fn check(
    known: &FoundPrincipal,
    needed: Option<&Access>,
    sent: &RequestFacts<'_>,
) -> Result<Arc<Principal>, Failure> {
    if known.principal.is_local() {
        refuse_other_sites(sent.headers)?;
    }
    if let Some(peer) = &known.peer
        && !peer.may(sent.method, sent.path)
    {
        let hint = "A peer may read agents, engage them, and read engagements.";
        let message = "This key is another server's, and such may not do this.";
        return Err(Failure(OjsError::new(403, "forbidden", message, hint)));
    }
    let principal = narrowed(known, sent.headers)?;
    if principal.roles.is_empty() {
        let message = format!("{} has no role.", principal.name);
        let hint =
            "Ask an admin for a role; the claims of a token give roles by [server.issuers.<name>] roles.";
        return Err(OjsError::new(403, "forbidden", message, hint).into());
    }
    if let Some(needed) = needed {
        needed.check(&principal)?;
    }
    Ok(principal)
}

/// Returns the response to a refused request; one without a known principal names the scheme of a key.
fn refusal(failure: Failure) -> Response {
    let is_unknown = failure.0.status == 401;
    let mut response = failure.into_response();
    if is_unknown {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
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
        (Some(_), None) if known.peer.is_some() => {
            let message = format!("The peer {} may not name a tenant.", principal.name);
            let hint =
                "Leave the header X-OJS-Tenant out, or set `tenant` of [remote.peers.<name>] of this server.";
            Err(OjsError::new(403, "forbidden", message, hint).into())
        }
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
