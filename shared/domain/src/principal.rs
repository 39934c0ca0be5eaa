//! Principals: the identity behind a request, its roles, its tenant, and the names that it may use.
//!
//! A principal comes from an API key or from a verified token. Tenant, user and reviewer of a request come from it. A
//! name in a body counts only within [`Principal::may_act_for`], and [`Principal::may_cause_work`] is the rule for work.

use crate::Timestamp;
use serde::{Deserialize, Serialize};

/// In [`Principal::acts_for`]: every name.
pub const ANYONE: &str = "*";

/// The member of `meta` with the principal that submitted an agent's job. A client cannot set it.
pub const SUBMITTED_BY: &str = "turnstone_submitted_by";

/// A configured key has at least this many characters, and so many different ones.
const SECRET_CHARACTERS: usize = 32;
const DISTINCT_CHARACTERS: usize = 8;
/// The longest name of a principal, in characters.
const NAME_CHARACTERS: usize = 128;
/// A principal may act for at most this many names; a back end with more users acts for [`ANYONE`].
pub const NAMES: usize = 1_000;

/// A role: a set of operations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Enqueues jobs, engages agents, sends inputs; reads.
    Submitter,
    /// Fetches and settles plain jobs.
    Worker,
    /// Answers reviews; reads.
    Approver,
    /// Pauses, retries, limits and configures; reads.
    Operator,
    /// Everything, keys and audit included.
    Admin,
}

impl Role {
    /// Every role, the weakest first.
    pub const ALL: [Self; 6] =
        [Self::Viewer, Self::Submitter, Self::Worker, Self::Approver, Self::Operator, Self::Admin];

    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Submitter => "submitter",
            Self::Worker => "worker",
            Self::Approver => "approver",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// Reads a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }

    /// Returns true if the role includes `needed`.
    #[must_use]
    pub fn includes(self, needed: Self) -> bool {
        self == needed
            || match self {
                Self::Admin => true,
                Self::Submitter | Self::Approver | Self::Operator => needed == Self::Viewer,
                Self::Viewer | Self::Worker => false,
            }
    }
}

/// The data that an operation concerns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    /// Data of one tenant: a principal of a tenant sees and changes its own.
    Tenant,
    /// Data that tenants share: only principals of the fleet.
    Fleet,
}

impl Scope {
    /// Returns its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tenant => "tenant",
            Self::Fleet => "fleet",
        }
    }
}

/// The part of a principal in the work that a request causes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkKind {
    /// The principal chooses content: a job, a schedule, a fork, a merge, an input, an answer, settings, or an import.
    Chosen,
    /// Work runs as its submitter left it: a retry, a resumption, an activation, or a move to another queue.
    Unchanged,
}

/// The identity behind a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    /// Unique among the principals of its tenant, or of the fleet.
    pub name: String,
    /// The id of its key; `None` for tokens, configured keys and requests without a key.
    pub key: Option<String>,
    /// The tenant; `None` for the fleet.
    pub tenant: Option<String>,
    /// The roles.
    pub roles: Vec<Role>,
    /// The users and reviewers whose names it may use beside its own; [`ANYONE`] means every name.
    pub acts_for: Vec<String>,
    /// Its e-mail address, verified by the issuer of its token; `None` for keys.
    pub email: Option<String>,
    /// Its name for records, unique in the installation. `None` for clients on this machine that need no key, because
    /// none is configured: they cannot be distinguished.
    pub identity: Option<String>,
}

impl Principal {
    /// Returns true if one of its roles includes `needed`.
    #[must_use]
    pub fn has(&self, needed: Role) -> bool {
        self.roles.iter().any(|role| role.includes(needed))
    }

    /// Returns true if it may use every name.
    #[must_use]
    pub fn acts_for_anyone(&self) -> bool {
        self.acts_for.iter().any(|name| name == ANYONE)
    }

    /// Returns true if it may use this name of a user or a reviewer.
    #[must_use]
    pub fn may_act_for(&self, name: &str) -> bool {
        name == self.name || self.acts_for_anyone() || self.acts_for.iter().any(|one| one == name)
    }

    /// Returns true if it may cause work for a user. Such work runs with the user's name, credentials, memory and state.
    /// `None` is work without a user, which every principal of the tenant may cause.
    ///
    /// Content that the principal chooses needs the right to act for the user. The roles operator and admin suffice to
    /// repeat or move work unchanged, because its user and content stay as they were submitted. Every operation that
    /// creates, repeats or moves work asks this function, or has a role that includes the answer.
    #[must_use]
    pub fn may_cause_work(&self, kind: WorkKind, user: Option<&str>) -> bool {
        user.is_none_or(|user| self.may_act_for(user))
            || (kind == WorkKind::Unchanged && self.has(Role::Operator))
    }

    /// Returns true if a policy may believe this principal about the e-mail address of a user. For itself, only the
    /// verified address of its token counts.
    #[must_use]
    pub fn may_state_email(&self, user: &str, email: &str) -> bool {
        let is_other = user != self.name && self.acts_for.iter().any(|name| name == user);
        let is_verified = user == self.name && self.email.as_deref() == Some(email);
        is_other || is_verified || self.acts_for_anyone()
    }

    /// Returns true for a client on this machine that needs no key.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.identity.is_none()
    }
}

/// Returns the identity of a principal: its name, below its tenant if it has one.
#[must_use]
pub fn identity(tenant: Option<&str>, name: &str) -> String {
    tenant.map_or_else(|| name.to_owned(), |tenant| format!("{tenant}/{name}"))
}

/// Returns true if two identities have one name in one tenant. A person with a key and a token has two identities, which
/// differ by the issuer after the name.
#[must_use]
pub fn have_one_name(a: &str, b: &str) -> bool {
    let name = |identity: &str| identity.split(' ').next().map(str::to_owned);
    name(a) == name(b)
}

/// A stored API key, without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiKey {
    /// Its id.
    pub id: String,
    /// Lower-case hex SHA-256 of the secret.
    pub hash: String,
    /// The hash of the secret before the last rotation, and the end of its use.
    pub old_hash: Option<(String, Timestamp)>,
    /// The principal's name.
    pub name: String,
    /// The tenant; `None` for the fleet.
    pub tenant: Option<String>,
    /// The roles.
    pub roles: Vec<Role>,
    /// The names that it may use beside its own.
    pub acts_for: Vec<String>,
    /// The most requests per minute; `None` is no limit.
    pub rate_per_minute: Option<i64>,
    /// When it was created.
    pub created_at: Timestamp,
    /// The name of the principal that created it.
    pub created_by: String,
    /// From then on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<Timestamp>,
}

impl ApiKey {
    /// Returns its principal.
    #[must_use]
    pub fn principal(&self) -> Principal {
        Principal {
            name: self.name.clone(),
            key: Some(self.id.clone()),
            tenant: self.tenant.clone(),
            roles: self.roles.clone(),
            acts_for: self.acts_for.clone(),
            email: None,
            identity: Some(identity(self.tenant.as_deref(), &self.name)),
        }
    }

    /// Returns true if it is neither revoked nor expired at this time.
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }

    /// Returns true if a secret of this hash opens it at this time.
    #[must_use]
    pub fn accepts(&self, hash: &str, now: Timestamp) -> bool {
        let old = self.old_hash.as_ref().is_some_and(|(old, until)| same(old, hash) && now < *until);
        self.is_valid(now) && (same(&self.hash, hash) || old)
    }

    /// Checks what a client asks for.
    ///
    /// # Errors
    /// The field, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        check_name(&self.name).map_err(|why| ("name", why))?;
        if let Some(tenant) = &self.tenant {
            check_name(tenant).map_err(|why| ("tenant", why))?;
        }
        if self.roles.is_empty() {
            return Err(("roles", "must name at least one role".to_owned()));
        }
        if self.acts_for.len() > NAMES {
            return Err((
                "acts_for",
                format!("must have at most {NAMES} names; `{ANYONE}` means every name"),
            ));
        }
        self.acts_for.iter().try_for_each(|name| check_name(name)).map_err(|why| ("acts_for", why))?;
        if self.rate_per_minute.is_some_and(|rate| rate < 1) {
            return Err(("rate_per_minute", "must be at least 1".to_owned()));
        }
        if self.expires_at.is_some_and(|end| end <= self.created_at) {
            return Err(("expires_at", "must be in the future".to_owned()));
        }
        Ok(())
    }
}

/// Checks that a configured key is long enough to be random.
///
/// # Errors
/// The rest of a sentence that begins with the key.
pub fn check_secret(secret: &str) -> Result<(), &'static str> {
    let mut distinct: Vec<char> = secret.chars().collect();
    distinct.sort_unstable();
    distinct.dedup();
    if secret.chars().count() < SECRET_CHARACTERS {
        return Err("has less than 32 characters, and may be guessed");
    }
    if distinct.len() < DISTINCT_CHARACTERS {
        return Err("has less than 8 different characters, and may be guessed");
    }
    Ok(())
}

/// Compares two hashes in constant time.
#[must_use]
pub fn same(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

/// Checks the name of a principal, a user or a tenant.
///
/// # Errors
/// The rest of a sentence that begins with the name.
pub fn check_name(name: &str) -> Result<(), String> {
    let visible = name.bytes().all(|byte| byte.is_ascii_graphic());
    if visible && (1..=NAME_CHARACTERS).contains(&name.len()) {
        return Ok(());
    }
    Err(format!("must have 1 to {NAME_CHARACTERS} visible ASCII characters and no blank"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ApiKey {
        ApiKey {
            id: "k1".to_owned(),
            hash: "aa".to_owned(),
            old_hash: Some(("bb".to_owned(), Timestamp(50))),
            name: "ann".to_owned(),
            tenant: Some("acme".to_owned()),
            roles: vec![Role::Approver],
            acts_for: vec!["ben".to_owned()],
            rate_per_minute: None,
            created_at: Timestamp(1),
            created_by: "local".to_owned(),
            expires_at: Some(Timestamp(100)),
            revoked_at: None,
            last_used_at: None,
        }
    }

    #[test]
    fn roles_include_reading_and_admin_includes_all() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert!(Role::Admin.includes(role) && role.includes(role));
        }
        assert!(Role::Operator.includes(Role::Viewer) && !Role::Worker.includes(Role::Viewer));
        assert!(!Role::Operator.includes(Role::Approver) && !Role::Approver.includes(Role::Submitter));
        assert!(!Role::Viewer.includes(Role::Submitter) && !Role::Submitter.includes(Role::Worker));
        assert_eq!(Role::parse("root"), None);
    }

    #[test]
    fn a_principal_acts_for_itself_and_for_those_that_it_names() {
        let ann = key().principal();
        assert!(ann.may_act_for("ann") && ann.may_act_for("ben") && !ann.may_act_for("cid"));
        assert_eq!(ann.identity.as_deref(), Some("acme/ann"));
        let all = Principal { acts_for: vec![ANYONE.to_owned()], ..ann };
        assert!(all.may_act_for("cid") && all.acts_for_anyone());
        assert!(Principal { identity: None, ..all }.is_local());
    }

    #[test]
    fn a_key_and_a_token_of_one_name_belong_together() {
        assert!(have_one_name("acme/ann", "acme/ann via corp") && have_one_name("ann via a", "ann via b"));
        assert!(!have_one_name("acme/ann", "ann via corp") && !have_one_name("ann", "annabel via corp"));
    }

    #[test]
    fn a_key_opens_until_it_expires_or_is_revoked() {
        let key = key();
        assert!(key.accepts("aa", Timestamp(99)) && !key.accepts("aa", Timestamp(100)));
        assert!(key.accepts("bb", Timestamp(49)) && !key.accepts("bb", Timestamp(50)));
        assert!(!key.accepts("cc", Timestamp(2)) && !key.accepts("", Timestamp(2)));
        let revoked = ApiKey { revoked_at: Some(Timestamp(3)), ..key };
        assert!(!revoked.accepts("aa", Timestamp(4)) && !revoked.accepts("bb", Timestamp(4)));
    }

    #[test]
    fn keys_are_checked_before_they_are_stored() {
        assert_eq!(key().check(), Ok(()));
        for (wrong, field) in [
            (ApiKey { name: "a b".to_owned(), ..key() }, "name"),
            (ApiKey { name: String::new(), ..key() }, "name"),
            (ApiKey { tenant: Some("ü".to_owned()), ..key() }, "tenant"),
            (ApiKey { roles: Vec::new(), ..key() }, "roles"),
            (ApiKey { acts_for: vec![String::new()], ..key() }, "acts_for"),
            (ApiKey { rate_per_minute: Some(0), ..key() }, "rate_per_minute"),
            (ApiKey { expires_at: Some(Timestamp(1)), ..key() }, "expires_at"),
        ] {
            assert_eq!(wrong.check().unwrap_err().0, field);
        }
    }

    #[test]
    fn a_key_that_may_be_guessed_is_refused() {
        assert!(check_secret("0123456789abcdef0123456789abcdef").is_ok());
        assert!(check_secret("0123456789abcdef0123456789abcde").is_err());
        assert!(check_secret(&"a".repeat(64)).is_err() && check_secret("").is_err());
    }
}
