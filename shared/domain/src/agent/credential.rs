//! Credentials with which capabilities are called (OAS-25, OAS-26, OAS-27).

use super::Capability;
use crate::Timestamp;
use crate::engagement::User;

/// The tool of a credential that serves every tool.
pub const ANY_TOOL: &str = "*";

/// The owner of a credential.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Owner {
    /// An end user, by id: for jobs that belong to no tenant.
    User(String),
    /// An end user of a tenant, as [`Owner::end_user`] writes them. Two tenants may have users with the same id.
    Member(String),
    /// A `static_identity`, by its name.
    Static(String),
}

impl Owner {
    /// Returns an end user of a tenant, or of none.
    #[must_use]
    pub fn end_user(tenant: Option<&str>, id: &str) -> Self {
        match tenant {
            None => Self::User(id.to_owned()),
            Some(tenant) => Self::Member(format!("{}:{id}", tenant.replace('%', "%25").replace(':', "%3A"))),
        }
    }

    /// `user`, `member` or `static`, as in the database.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => "user",
            Self::Member(_) => "member",
            Self::Static(_) => "static",
        }
    }

    /// Returns the user's id, that of a tenant with the tenant before it, or the identity's name.
    #[must_use]
    pub fn subject(&self) -> &str {
        match self {
            Self::User(subject) | Self::Member(subject) | Self::Static(subject) => subject,
        }
    }

    /// Puts [`Owner::kind`] and [`Owner::subject`] together again.
    #[must_use]
    pub fn of(kind: &str, subject: impl Into<String>) -> Option<Self> {
        match kind {
            "user" => Some(Self::User(subject.into())),
            "member" => Some(Self::Member(subject.into())),
            "static" => Some(Self::Static(subject.into())),
            _ => None,
        }
    }

    /// Reads `user:ID`, `member:TENANT:ID` or `static:NAME`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, subject) = text.split_once(':')?;
        let owner = if subject.is_empty() { None } else { Self::of(kind, subject) }?;
        match &owner {
            Self::Member(subject) => {
                let (tenant, id) = subject.split_once(':')?;
                let plain = tenant.replace("%3A", ":").replace("%25", "%");
                let same = !plain.is_empty() && !id.is_empty() && Self::end_user(Some(&plain), id) == owner;
                same.then_some(owner)
            }
            Self::User(_) | Self::Static(_) => Some(owner),
        }
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.kind(), self.subject())
    }
}

/// A header that is sent with the calls of a tool.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The owner.
    pub owner: Owner,
    /// The tool, or [`ANY_TOOL`].
    pub tool: String,
    /// The header's name, in lower case.
    pub header: String,
    /// Put before the secret, such as `Bearer ` with its blank.
    pub prefix: String,
    /// The secret, or where it is.
    pub content: Content,
    /// When it was set.
    pub updated_at: Timestamp,
}

/// A secret, or where it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Content {
    /// The name of a secret among `secrets` of the workers' `[tool_policy]`.
    Reference(String),
    /// The secret itself; a store keeps it only sealed.
    Value(String),
}

impl Content {
    /// `reference` or `value`, as in the database.
    #[must_use]
    pub fn form(&self) -> &'static str {
        match self {
            Self::Reference(_) => "reference",
            Self::Value(_) => "value",
        }
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credential({} {} {} ***)", self.owner, self.tool, self.header)
    }
}

/// The identity under which a call is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Acting {
    /// As the end user.
    User,
    /// With the credentials of a static identity.
    Static(String),
    /// Without an identity.
    Anonymous,
}

/// Returns the identity under which a capability is called (the truth table of the agents brief, §1.3).
///
/// # Errors
/// A sentence for the model: the capability needs a user's identity, the caller gave none, and no static identity
/// replaces it.
pub fn acting(capability: &Capability, user: &User) -> Result<Acting, String> {
    let named = || capability.static_identity.clone().map(Acting::Static);
    match (capability.user_identity, user.is_known()) {
        (true, true) => Ok(Acting::User),
        (true, false) => named().ok_or_else(|| {
            format!(
                "`{}` is called with the identity of the calling user, and the caller did not name that user",
                capability.name
            )
        }),
        (false, _) => Ok(named().unwrap_or(Acting::Anonymous)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAS-25, OAS-27: all eight combinations.
    #[test]
    fn the_truth_table_of_identities() {
        let known = User { id: "u-1".into(), email: None };
        let unknown = User::default();
        let named = Acting::Static("desk".into());
        for (user_identity, user, is_set, expected) in [
            (true, &known, true, Ok(Acting::User)),
            (true, &known, false, Ok(Acting::User)),
            (true, &unknown, true, Ok(named.clone())),
            (true, &unknown, false, Err(())),
            (false, &known, true, Ok(named.clone())),
            (false, &unknown, true, Ok(named.clone())),
            (false, &known, false, Ok(Acting::Anonymous)),
            (false, &unknown, false, Ok(Acting::Anonymous)),
        ] {
            let static_identity = is_set.then(|| "desk".to_owned());
            let capability = Capability { user_identity, static_identity, ..Capability::named("t") };
            assert_eq!(
                acting(&capability, user).map_err(|_| ()),
                expected,
                "{user_identity} {user:?} {is_set}"
            );
        }
    }

    #[test]
    fn owners_are_written_as_kind_and_subject() {
        let member = |tenant: &str, id: &str| Owner::end_user(Some(tenant), id);
        for owner in [
            Owner::end_user(None, "a:b"),
            Owner::Static("desk".into()),
            member("acme", "u:1"),
            member("a:b%", "u"),
            member("a%3Ab", "u"),
        ] {
            assert_eq!(Owner::parse(&owner.to_string()), Some(owner));
        }
        assert_eq!(member("acme", "u-1").to_string(), "member:acme:u-1");
        // No user of one tenant is written like one of another.
        assert_ne!(member("a:b", "c"), member("a", "b:c"));
        assert_ne!(member("a%3Ab", "c"), member("a:b", "c"));
        let bad =
            ["user:", "user", "robot:x", "", "member:acme", "member::u", "member:acme:", "member:50%:u"];
        assert!(bad.iter().all(|bad| Owner::parse(bad).is_none()));
    }
}
