//! API keys of principals. Only the response to creation and rotation contains the secret.

mod create;
pub(crate) mod list;
pub(crate) mod own;
mod revoke;
mod rotate;
pub(crate) mod routes;

use crate::principals::PREFIX;
use crate::reply::Failure;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use turnstone_domain::principal::{ApiKey, Role};
use turnstone_domain::{Timestamp, digest};
use turnstone_ojs::OjsError;
use utoipa::ToSchema;

/// Bytes of a secret.
const SECRET_BYTES: usize = 32;

/// Returns a new secret and its hash.
///
/// # Errors
/// 500 when the system gives no random bytes.
fn new_secret() -> Result<(String, String), Failure> {
    let mut bytes = [0_u8; SECRET_BYTES];
    let failed = |_| OjsError::internal("The system gave no random bytes for a key.");
    SystemRandom::new().fill(&mut bytes).map_err(failed)?;
    let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes));
    let hash = digest::of_text(&secret);
    Ok((secret, hash))
}

/// A key, without its secret.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct ShownKey {
    /// Its id.
    pub id: String,
    /// The principal.
    #[schema(example = "batch-backend")]
    pub name: String,
    /// null for the fleet.
    pub tenant: Option<String>,
    /// viewer, submitter, worker, approver, operator, admin.
    pub roles: Vec<String>,
    /// The users and reviewers whose names it may use; `*` means all.
    pub acts_for: Vec<String>,
    /// The most requests per minute; null is no limit.
    rate_per_minute: Option<i64>,
    /// active, expired or revoked.
    pub state: String,
    created_at: String,
    /// The principal that created it.
    created_by: String,
    /// When it expires.
    pub expires_at: Option<String>,
    revoked_at: Option<String>,
    /// To the minute.
    pub last_used_at: Option<String>,
    /// The secret before the last rotation is accepted until then.
    old_secret_until: Option<String>,
}

/// A key and its secret, which no other response contains.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct NewKey {
    /// The key.
    #[serde(flatten)]
    pub key: ShownKey,
    /// Sent as `Authorization: Bearer <secret>`.
    pub secret: String,
}

impl ShownKey {
    fn of(key: &ApiKey, now: Timestamp) -> Self {
        let text = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
        let state = match (key.revoked_at, key.is_valid(now)) {
            (Some(_), _) => "revoked",
            (None, true) => "active",
            (None, false) => "expired",
        };
        let old = key.old_hash.as_ref().map(|(_, until)| *until).filter(|until| *until > now);
        Self {
            id: key.id.clone(),
            name: key.name.clone(),
            tenant: key.tenant.clone(),
            roles: key.roles.iter().map(|role| Role::as_str(*role).to_owned()).collect(),
            acts_for: key.acts_for.clone(),
            rate_per_minute: key.rate_per_minute,
            state: state.to_owned(),
            created_at: key.created_at.to_rfc3339(),
            created_by: key.created_by.clone(),
            expires_at: text(key.expires_at),
            revoked_at: text(key.revoked_at),
            last_used_at: text(key.last_used_at),
            old_secret_until: text(old),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_32_random_bytes_and_is_known_by_its_hash() {
        let (a, b) = (new_secret().unwrap(), new_secret().unwrap());
        assert!(a.0.len() == PREFIX.len() + 43 && a.0 != b.0 && a.1 == digest::of_text(&a.0));
    }
}
