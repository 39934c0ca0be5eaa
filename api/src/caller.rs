//! The caller: a client, or another Turnstone server that has a key of its own.

use crate::reply::Failure;
use crate::request::Tenant;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use turnstone_domain::agent::remote;
use turnstone_domain::engagement::User;
use turnstone_domain::principal::{Principal, WorkKind};
use turnstone_ojs::OjsError;
use turnstone_telemetry::Secret;

/// Another Turnstone server that may use the agents of this one.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its name in logs and errors.
    pub name: String,
    /// Its key, sent as `Authorization: Bearer <key>`.
    pub key: Secret,
    /// The tenant of its engagements; `None` for a peer of the fleet.
    pub tenant: Option<String>,
    /// The agents that it may use; `None` for all.
    pub agents: Option<Vec<String>>,
    /// The users that it may name; `*` means all.
    pub users: Vec<String>,
}

impl Peer {
    /// Returns true if the peer may use this endpoint. It may find agents, begin engagements, and read their state; of
    /// agents, only those that it may use.
    pub(crate) fn may(&self, method: &Method, path: &str) -> bool {
        let segments: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let fits = match segments.as_slice() {
            ["agents"]
            | ["engagements", _]
            | ["agents", _, "describe"]
            | ["agents", _, "getevents" | "request", _]
            | ["a2a", _, ".well-known", "agent-card.json"] => method == Method::GET,
            ["agents", _] => method == Method::GET || method == Method::POST,
            ["agents", _, "process"] | ["a2a", _] => method == Method::POST,
            _ => false,
        };
        let agent = match segments.as_slice() {
            ["agents" | "a2a", agent, ..] => Some(*agent),
            _ => None,
        };
        let allowed = self.agents.as_ref().zip(agent);
        fits && allowed.is_none_or(|(agents, agent)| agents.iter().any(|one| one == agent))
    }
}

/// The caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Caller {
    /// A client with an API key, or any client where none is configured.
    Client,
    /// Another server, by its name.
    Peer(String),
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or(Self::Client))
    }
}

/// The context of an engagement that works for one on another server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PeerRequest {
    /// The number of agents above it on other servers.
    pub(crate) depth: i64,
    /// The tokens that it may spend.
    pub(crate) token_budget: Option<i64>,
    /// The end user, when the other server knows one.
    pub(crate) user: Option<User>,
}

/// The caller and its tenant.
pub(crate) struct Who {
    pub(crate) tenant: Tenant,
    pub(crate) caller: Caller,
}

impl<S: Send + Sync> FromRequestParts<S> for Who {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let tenant = Tenant::from_request_parts(parts, state).await?;
        Ok(Self { tenant, caller: Caller::from_request_parts(parts, state).await? })
    }
}

impl Caller {
    /// Returns the name of the calling server, when it is one.
    pub(crate) fn peer(&self) -> Option<&str> {
        match self {
            Self::Client => None,
            Self::Peer(name) => Some(name),
        }
    }

    /// Reads a peer's request context. From any other caller it is refused: ignoring it would let a cycle of servers
    /// never end.
    pub(crate) fn peer_request(
        &self,
        principal: &Principal,
        headers: &HeaderMap,
    ) -> Result<Option<PeerRequest>, Failure> {
        let Some(any) = remote::HEADERS.iter().find(|name| headers.contains_key(**name)) else {
            return Ok(None);
        };
        if *self == Self::Client {
            let hint =
                "Configure the other server as [remote.peers.<name>] of this one, or leave the header out.";
            let message = format!("The header {any} is believed from configured peers only.");
            return Err(OjsError::new(403, "forbidden", message, hint).into());
        }
        let user = match text(headers, remote::USER)? {
            Some(id) if id.is_empty() => return Err(wrong(remote::USER, "must not be empty")),
            Some(id) if !principal.may_cause_work(WorkKind::Chosen, Some(&id)) => {
                let hint = "Name the user in `users` of [remote.peers.<name>] of this server, or `*` for every user.";
                let message = format!("The peer {} may not act for user {id}.", principal.name);
                return Err(OjsError::new(403, "forbidden", message, hint).into());
            }
            Some(id) => Some(User { id, email: text(headers, remote::USER_EMAIL)? }),
            None if headers.contains_key(remote::USER_EMAIL) => {
                return Err(wrong(remote::USER_EMAIL, "needs the header turnstone-user beside it"));
            }
            None => None,
        };
        let depth = number(headers, remote::DEPTH)?.unwrap_or(0);
        Ok(Some(PeerRequest { depth, token_budget: number(headers, remote::TOKEN_BUDGET)?, user }))
    }
}

fn wrong(name: &str, why: &str) -> Failure {
    OjsError::invalid_request(&format!("the header {name}"), why).into()
}

fn number(headers: &HeaderMap, name: &str) -> Result<Option<i64>, Failure> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let number = value.to_str().ok().and_then(|text| text.trim().parse::<i64>().ok());
    let number = number.filter(|number| *number >= 0);
    number.map(Some).ok_or_else(|| wrong(name, "must be a whole number of at least 0"))
}

fn text(headers: &HeaderMap, name: &str) -> Result<Option<String>, Failure> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = value.to_str().ok().and_then(remote::decoded);
    text.map(Some).ok_or_else(|| wrong(name, "must be percent-encoded UTF-8"))
}
