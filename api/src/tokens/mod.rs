//! Bearer tokens of identity providers: JSON web tokens (RFC 7519) of the configured issuers.
//!
//! ```text
//!  token ─▶ verified lately? ──────────────────────────────▶ principal
//!              │ no
//!              ╰▶ issuer by `iss` ─▶ keyset: key by `kid` ─▶ signature, audience, times ─▶ claims ─▶ principal
//!                                      ╰▶ fetch (unknown key, or old keys)
//! ```
//!
//! A token that was verified is kept with its principal until it ends, or until the keys of its issuer change.

mod claims;
mod fetch;
mod issuer;
mod keyset;
mod ring_verifier;
mod verified;
mod verify;

pub use issuer::{Issuer, IssuerConfig};

use crate::reply::Failure;
use keyset::Keyset;
use std::sync::Arc;
use turnstone_domain::principal::Principal;
use turnstone_domain::{Clock, Timestamp};
use turnstone_ojs::OjsError;
use verified::{VerifiedToken, VerifiedTokens};
use verify::{TokenFault, UnverifiedToken};

/// A token has at most this many characters.
const TOKEN_CHARACTERS: usize = 16 * 1024;

/// The issuers whose tokens are accepted, and the tokens that were verified lately.
pub(crate) struct Tokens {
    issuers: Vec<Arc<Trusted>>,
    clock: Arc<dyn Clock>,
    verified: VerifiedTokens,
}

/// An issuer with its keys.
struct Trusted {
    issuer: Issuer,
    keys: Arc<Keyset>,
}

/// The principal of a token.
pub(crate) struct TokenPrincipal {
    pub(crate) principal: Arc<Principal>,
    /// From then on the token is refused.
    pub(crate) ends_at: Timestamp,
}

impl Tokens {
    pub(crate) fn new(issuers: &[Issuer], clock: Arc<dyn Clock>) -> Self {
        ring_verifier::install();
        let trusted = |issuer: &Issuer| {
            let keys = Arc::new(Keyset::new(issuer.key_source.clone()));
            Arc::new(Trusted { issuer: issuer.clone(), keys })
        };
        Self { issuers: issuers.iter().map(trusted).collect(), clock, verified: VerifiedTokens::default() }
    }

    /// Returns true if no token is accepted, because no issuer is configured.
    pub(crate) fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }

    /// Returns the principal of a token, whose SHA-256 is `hash`.
    ///
    /// # Errors
    /// - 401 when the token is not valid
    /// - 403 when its claims make no principal
    /// - 429 above the rate of its issuer
    /// - 503 when the keys of its issuer cannot be read
    pub(crate) async fn find(&self, token: &str, hash: &str) -> Result<TokenPrincipal, Failure> {
        let now = self.clock.now();
        let found = match self.known(hash, now).await {
            Some(known) => known,
            None => self.verify(token, hash, now).await?,
        };
        found.admit(now)?;
        Ok(TokenPrincipal { principal: Arc::clone(&found.principal), ends_at: found.ends_at })
    }

    /// Returns a token that was verified with keys that its issuer still has.
    async fn known(&self, hash: &str, now: Timestamp) -> Option<Arc<VerifiedToken>> {
        let known = self.verified.find(hash, now)?;
        let keys = &self.issuers.get(known.issuer)?.keys;
        (keys.version(now).await == Some(known.keys_version)).then_some(known)
    }

    async fn verify(&self, token: &str, hash: &str, now: Timestamp) -> Result<Arc<VerifiedToken>, Failure> {
        if token.len() > TOKEN_CHARACTERS {
            return Err(invalid(&TokenFault::Malformed("it is too long")));
        }
        let unverified = UnverifiedToken::read(token).map_err(|fault| invalid(&fault))?;
        let place = self.issuers.iter().position(|one| one.issuer.name_of_issuer() == unverified.issuer);
        let Some((place, trusted)) = place.and_then(|place| Some((place, self.issuers.get(place)?))) else {
            return Err(invalid(&TokenFault::UnknownIssuer));
        };
        let issuer = &trusted.issuer;
        let algorithm = unverified.algorithm(issuer).map_err(|fault| invalid(&fault))?;
        let found = trusted.keys.find(unverified.key_id(), algorithm, now).await;
        let found = found.map_err(|why| unreachable(issuer, &why))?;
        let (key, keys_version) = found.ok_or_else(|| invalid(&TokenFault::UnknownKey))?;
        let verified = unverified.verify(issuer, &key, algorithm, now).map_err(|fault| invalid(&fault))?;
        let principal = claims::principal(issuer, &verified.claims).map_err(|why| unfit(issuer, &why))?;
        let token = VerifiedToken {
            issuer: place,
            keys_version,
            rate: issuer.rate_per_minute.map(|rate| self.verified.rate(&principal, rate, now)),
            principal: Arc::new(principal),
            ends_at: verified.ends_at,
        };
        Ok(self.verified.keep(hash, token, now))
    }
}

/// Returns true if a presented secret has the form of a token: three parts of base64url.
pub(crate) fn is_token(presented: &str) -> bool {
    let is_part =
        |part: &str| part.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    presented.split('.').count() == 3 && presented.split('.').all(is_part)
}

/// 401: the token is not valid.
fn invalid(fault: &TokenFault) -> Failure {
    let hint = "Get a new token from the issuer, for the audience of this server, and send it as \
        `Authorization: Bearer <token>`.";
    OjsError::new(401, "unauthorized", format!("The token is refused: {fault}."), hint).into()
}

/// 403: the token is valid, but its claims make no principal.
fn unfit(issuer: &Issuer, why: &str) -> Failure {
    let message = format!("The token is valid for [server.issuers.{}], but {why}.", issuer.name);
    let hint = "Ask an admin of the identity provider for the claim, or compare the section with the token.";
    OjsError::new(403, "forbidden", message, hint).into()
}

/// 503: the keys of the issuer cannot be read.
fn unreachable(issuer: &Issuer, why: &str) -> Failure {
    let message = format!("The public keys of the issuer {} cannot be read: {why}.", issuer.name);
    let hint = "Send the request again in a moment, or use a key of this server.";
    let error = OjsError::new(503, "issuer_unreachable", message, hint);
    OjsError { retryable: true, ..error.with("retry_after", keyset::AGAIN_MS / 1_000) }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_three_parts_of_base64url() {
        assert!(is_token("eyJh.eyJp._-9") && is_token("a.b."));
        for other in ["", "tsk_abc", "a.b", "a.b.c.d", "a.b.c=", "a b.c.d", "ü.b.c"] {
            assert!(!is_token(other), "{other}");
        }
    }
}
