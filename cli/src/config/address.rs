//! The address of a server that may contain a password: given as it is, or by reference, and never shown in full.

use reqwest::Url;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use turnstone_telemetry::{Secret, SecretRef};

/// An address such as `postgres://user:password@host/database`, or where it is: `env:NAME`, `file:/path`.
#[derive(Clone, PartialEq, Eq)]
pub enum Address {
    /// The address itself.
    Given(String),
    /// Where it is.
    Reference(SecretRef),
}

impl Address {
    /// Fetches the address. From then on its password is struck out of logs and errors.
    ///
    /// # Errors
    /// A sentence that names the reference, never the value.
    pub fn resolve(&self) -> Result<String, String> {
        let address = match self {
            Self::Given(address) => address.clone(),
            Self::Reference(reference) => reference.resolve()?.expose().to_owned(),
        };
        conceal_password(&address);
        Ok(address)
    }
}

/// Parses an address. One that names several hosts (`postgres://user@a:5432,b:5432/t`) is parsed with the first of them; the
/// second value is all of them.
pub fn parse(address: &str) -> Option<(Url, Option<&str>)> {
    let begin = address.find("://")? + 3;
    let end = address[begin..].find(['/', '?', '#']).map_or(address.len(), |at| begin + at);
    let begin = address[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
    let hosts = &address[begin..end];
    let Some((first, _)) = hosts.split_once(',') else {
        return Url::parse(address).ok().map(|url| (url, None));
    };
    let one = format!("{}{first}{}", &address[..begin], &address[end..]);
    Url::parse(&one).ok().map(|url| (url, Some(hosts)))
}

/// Registers the password as a secret. A password that is also another part of the address protects nothing, and
/// redacting it would hit other words.
fn conceal_password(address: &str) {
    let Some((url, _)) = parse(address) else { return };
    let in_query =
        url.query_pairs().filter(|(name, _)| name == "password").map(|(_, value)| value.into_owned());
    for password in url.password().map(str::to_owned).into_iter().chain(in_query) {
        let elsewhere = [url.scheme(), url.username(), url.path().trim_start_matches('/')];
        if !elsewhere.contains(&password.as_str()) && !url.scheme().contains(&password) {
            let _ = Secret::given(password);
        }
    }
}

/// The address without its password and without its parameters, which may hold one.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = match self {
            Self::Reference(reference) => return write!(f, "{reference}"),
            Self::Given(address) => address,
        };
        let Some((mut url, hosts)) = parse(address).filter(|(url, _)| !url.cannot_be_a_base()) else {
            return f.write_str("***");
        };
        if url.password().is_some() && url.set_password(Some("***")).is_err() {
            return f.write_str("***");
        }
        url.set_query(None);
        url.set_fragment(None);
        let Some(hosts) = hosts else { return write!(f, "{url}") };
        let user = match (url.username(), url.password()) {
            ("", None) => String::new(),
            (user, None) => format!("{user}@"),
            (user, Some(hidden)) => format!("{user}:{hidden}@"),
        };
        write!(f, "{}://{user}{hosts}{}", url.scheme(), url.path())
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    /// Commands that need the address resolve it later: another program's `DATABASE_URL` must not keep other commands
    /// from working.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(SecretRef::parse(&text).map_or(Self::Given(text), Self::Reference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        serde_json::from_value(text.into()).unwrap()
    }

    #[test]
    fn an_address_never_shows_its_password() {
        for (given, shown) in [
            ("postgres://ann:s3cret-word@db:5432/t", "postgres://ann:***@db:5432/t"),
            ("postgres://db/t?password=s3cret-word&user=ann", "postgres://db/t"),
            ("postgres://ann:s3cret-word@a:1,[::1]:2,b/t?x=y", "postgres://ann:***@a:1,[::1]:2,b/t"),
            ("postgres://a,b/t", "postgres://a,b/t"),
            ("postgres:///t?host=/run/postgresql", "postgres:///t"),
            ("redis://:s3cret-word@cache/0", "redis://:***@cache/0"),
            ("s3cret-word", "***"),
            ("env:DATABASE_URL", "env:DATABASE_URL"),
            ("file:/run/secrets/url", "file:/run/secrets/url"),
        ] {
            let address = address(given);
            assert_eq!((address.to_string(), format!("{address:?}")), (shown.to_owned(), shown.to_owned()));
            assert_eq!(serde_json::to_value(&address).unwrap(), shown);
        }
    }

    #[test]
    fn a_resolved_password_is_struck_out_but_not_a_common_word() {
        address("postgres://ann:quite-unguessable@db/t").resolve().unwrap();
        address("postgres://a:1,b:2/t?password=in-the-query").resolve().unwrap();
        address("postgres://plain-word:plain-word@db/t").resolve().unwrap();
        let text = turnstone_telemetry::redact("quite-unguessable in-the-query plain-word");
        assert_eq!(text, "*** *** plain-word");
    }

    #[test]
    fn a_reference_that_leads_nowhere_is_named() {
        let problem = address("env:TURNSTONE_SURELY_UNSET_URL").resolve().unwrap_err();
        assert!(problem.contains("TURNSTONE_SURELY_UNSET_URL"), "{problem}");
    }
}
