//! The checks of one token: form, algorithm, signature, issuer, audience and times.

use super::issuer::Issuer;
use super::keyset::PublicTokenKey;
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Header, Validation, decode, decode_header};
use serde_json::{Map, Value};
use std::collections::HashSet;
use turnstone_domain::Timestamp;

/// The clocks of issuer and server may differ by so much.
pub(super) const LEEWAY_MS: i64 = 30_000;

/// The claims of a token.
pub(super) type Claims = Map<String, Value>;

/// The reason why a token is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum TokenFault {
    /// It is no token of this kind.
    #[error("{0}")]
    Malformed(&'static str),
    #[error("its issuer is not configured")]
    UnknownIssuer,
    #[error("its algorithm is not one that the issuer may use")]
    Algorithm,
    #[error("its issuer has no such key")]
    UnknownKey,
    #[error("its signature does not fit")]
    Signature,
    #[error("it is for another audience")]
    Audience,
    #[error("it has no time of expiry (`exp`)")]
    NoEnd,
    #[error("it is expired")]
    Expired,
    #[error("it is not valid yet (`nbf`)")]
    Early,
}

/// A token of which nothing is proved.
pub(super) struct UnverifiedToken<'a> {
    token: &'a str,
    header: Header,
    /// The claim `iss`.
    pub(super) issuer: String,
}

/// The proved content of a token.
pub(super) struct Verified {
    pub(super) claims: Claims,
    /// From then on it is refused.
    pub(super) ends_at: Timestamp,
}

impl<'a> UnverifiedToken<'a> {
    /// Reads the header, and the issuer that the token claims to have. `alg: none` is no algorithm.
    pub(super) fn read(token: &'a str) -> Result<Self, TokenFault> {
        let header = decode_header(token)
            .map_err(|_| TokenFault::Malformed("its header cannot be read, or names no known algorithm"))?;
        if header.crit.is_some() {
            return Err(TokenFault::Malformed("its header has extensions (`crit`) that are not supported"));
        }
        let claims: Claims = insecure_decode_claims(token)
            .map_err(|_| TokenFault::Malformed("its claims are no JSON object"))?;
        let issuer = claims.get("iss").and_then(Value::as_str);
        let issuer = issuer.ok_or(TokenFault::Malformed("it names no issuer (`iss`)"))?.to_owned();
        Ok(Self { token, header, issuer })
    }

    /// Returns the id of the key.
    pub(super) fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// Returns the algorithm, if the issuer may use it.
    pub(super) fn algorithm(&self, issuer: &Issuer) -> Result<Algorithm, TokenFault> {
        let allowed = issuer.algorithms.iter().find(|algorithm| **algorithm == self.header.alg);
        allowed.copied().ok_or(TokenFault::Algorithm)
    }

    /// Checks everything, and returns the claims.
    pub(super) fn verify(
        &self,
        issuer: &Issuer,
        key: &PublicTokenKey,
        algorithm: Algorithm,
        now: Timestamp,
    ) -> Result<Verified, TokenFault> {
        let mut rules = Validation::new(algorithm);
        rules.set_issuer(&[issuer.name_of_issuer()]);
        rules.set_audience(&issuer.config.audience);
        rules.required_spec_claims = HashSet::from(["iss".to_owned(), "aud".to_owned()]);
        // The library reads the machine's clock; times are compared with the injected one below.
        rules.validate_exp = false;
        rules.validate_nbf = false;
        let claims =
            decode::<Claims>(self.token, &key.key, &rules).map_err(|error| fault(error.kind()))?.claims;
        let end = seconds(claims.get("exp")).map_err(|()| TokenFault::NoEnd)?.ok_or(TokenFault::NoEnd)?;
        let ends_at = end.plus_ms(LEEWAY_MS);
        if now >= ends_at {
            return Err(TokenFault::Expired);
        }
        let begin = seconds(claims.get("nbf")).map_err(|()| TokenFault::Early)?;
        if begin.is_some_and(|begin| now < begin.plus_ms(-LEEWAY_MS)) {
            return Err(TokenFault::Early);
        }
        Ok(Verified { claims, ends_at })
    }
}

fn fault(kind: &ErrorKind) -> TokenFault {
    match kind {
        ErrorKind::InvalidAudience => TokenFault::Audience,
        ErrorKind::MissingRequiredClaim(claim) if claim == "aud" => TokenFault::Audience,
        ErrorKind::InvalidIssuer | ErrorKind::MissingRequiredClaim(_) => TokenFault::UnknownIssuer,
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidKeyFormat => TokenFault::Algorithm,
        ErrorKind::Json(_) | ErrorKind::Utf8(_) | ErrorKind::Base64(_) | ErrorKind::InvalidToken => {
            TokenFault::Malformed("it cannot be read")
        }
        _ => TokenFault::Signature,
    }
}

/// Reads a `NumericDate`: seconds since the epoch, with or without a fraction.
fn seconds(claim: Option<&Value>) -> Result<Option<Timestamp>, ()> {
    let Some(claim) = claim.filter(|claim| !claim.is_null()) else { return Ok(None) };
    let whole = claim.as_i64().and_then(|seconds| seconds.checked_mul(1_000));
    #[expect(clippy::cast_possible_truncation, reason = "within the bounds that were checked")]
    let parts = || {
        let ms = claim.as_f64()? * 1_000.0;
        (ms.abs() < 9.0e15).then_some(ms as i64)
    };
    whole.or_else(parts).map(|ms| Some(Timestamp(ms))).ok_or(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn times_are_seconds_with_or_without_a_fraction() {
        let read = |claim: Value| seconds(Some(&claim)).map(|time| time.map(|time| time.0));
        assert_eq!(read(json!(12)), Ok(Some(12_000)));
        assert_eq!(read(json!(12.5)), Ok(Some(12_500)));
        assert_eq!((read(json!(null)), seconds(None)), (Ok(None), Ok(None)));
        for wrong in [json!("12"), json!(1e300), json!([12]), json!(i64::MAX)] {
            assert_eq!(read(wrong.clone()), Err(()), "{wrong}");
        }
    }
}
