//! The identity of a tool call, and its headers (OAS-25, OAS-26, OAS-27).

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};
use std::sync::atomic::AtomicI64;
use turnstone_domain::agent::credential::{Content, Credential};
use turnstone_domain::agent::remote;
use turnstone_domain::engagement::User;
use turnstone_telemetry::{Secret, SecretRef};

/// The identity of a tool call. It is used in the call and nowhere else.
#[derive(Clone, Default)]
pub struct Identity {
    /// The end user, when the call is made in the user's name.
    pub user: Option<User>,
    /// The headers that the user or the static identity has for this tool.
    pub credentials: HeaderMap,
    /// The engagement, as another server receives it; only for remote agents.
    pub peer_request: Option<std::sync::Arc<PeerRequest>>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.credentials.keys().map(HeaderName::as_str).collect();
        f.debug_struct("Identity").field("user", &self.user).field("credentials", &names).finish()
    }
}

/// A request to another server that works for an engagement, with the costs that it reports.
#[derive(Debug)]
pub struct PeerRequest {
    /// The number of agents above the engagement there.
    pub depth: i64,
    /// The tokens reserved for it.
    pub token_budget: i64,
    /// The end user, if the caller named one.
    pub user: Option<User>,
    /// The tokens that it reports as used.
    pub tokens_used: AtomicI64,
    /// The handle of its work, when it was called before.
    pub handle: Option<Value>,
    /// Our user's answers to its questions, each with the question's id, the newest last.
    pub answers: Vec<(String, Map<String, Value>)>,
}

impl PeerRequest {
    /// Returns the answer to a question, if there is one.
    #[must_use]
    pub fn answer(&self, question: &str) -> Option<&Map<String, Value>> {
        self.answers.iter().rev().find(|(id, _)| id == question).map(|(_, answer)| answer)
    }

    /// Returns the headers by which another Turnstone server receives it.
    #[must_use]
    pub fn headers(&self) -> HeaderMap {
        let mut headers = self.user.as_ref().map(said_of).unwrap_or_default();
        headers.insert(remote::DEPTH, self.depth.into());
        headers.insert(remote::TOKEN_BUDGET, self.token_budget.into());
        headers
    }
}

impl Identity {
    /// Adds the headers of the user and of the credentials to a request.
    pub fn put_into(&self, headers: &mut HeaderMap) {
        if let Some(user) = &self.user {
            headers.extend(said_of(user));
        }
        for (name, value) in &self.credentials {
            headers.insert(name, value.clone());
        }
    }
}

/// Returns the headers that name a user.
pub fn said_of(user: &User) -> HeaderMap {
    let texts = [(remote::USER, Some(user.id.as_str())), (remote::USER_EMAIL, user.email.as_deref())];
    let header = |(name, text): (&'static str, Option<&str>)| {
        let value = HeaderValue::from_str(&remote::encoded(text?)).ok()?;
        Some((HeaderName::from_static(name), value))
    };
    texts.into_iter().filter_map(header).collect()
}

/// Returns stored credentials as headers. `named` finds the secrets that are given by name.
///
/// # Errors
/// A sentence that names the header, never a value.
pub fn headers(
    credentials: &[Credential],
    named: impl Fn(&str, &Credential) -> Result<SecretRef, String>,
) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::with_capacity(credentials.len());
    for one in credentials {
        let wrong =
            |why: String| format!("the credential {} of {} cannot be used: {why}", one.header, one.owner);
        let secret = match &one.content {
            Content::Value(value) => Secret::given(value.as_str()),
            Content::Reference(name) => {
                named(name, one).and_then(|secret| secret.resolve()).map_err(wrong)?
            }
        };
        let name =
            HeaderName::try_from(one.header.as_str()).map_err(|_| wrong("it is no header".to_owned()))?;
        let value = HeaderValue::try_from(format!("{}{}", one.prefix, secret.expose()));
        let mut value = value.map_err(|_| wrong("its value cannot be sent in a header".to_owned()))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
