//! `[tool_policy]`: the hosts and secrets that manifests may use beyond the registry. By default there are
//! none.

use super::program::{ProgramLimits, Sandbox};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Component, PathBuf};
use turnstone_specs::agent_spec::AllowedCommands;
use turnstone_telemetry::SecretRef;
use url::Url;

/// The hosts and secrets that a manifest may name by itself.
///
/// ```toml
/// [tool_policy]
/// allowed_hosts = ["api.example.com", "*.tools.example.com"]
/// secrets = { CRM_KEY = { secret = "env:CRM_KEY", hosts = ["api.example.com"] } }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolPolicy {
    /// The hosts that an `endpoint` or the URL of an MCP server may name: `host`, `host:port` or `*.domain`.
    pub allowed_hosts: Vec<String>,
    /// The secrets that a manifest may send there, by their names in `${NAME}`.
    pub secrets: BTreeMap<String, BoundSecret>,
    /// The programs that an Agent Spec document may start as MCP servers (`StdioTransport`), by the names in documents.
    pub allowed_commands: AllowedCommands,
    /// The files, and the folders with files, from which an Agent Spec document may name keys, certificates and
    /// credentials.
    pub allowed_files: Vec<PathBuf>,
    /// How strictly programs are kept from this process and from one another: those of documents and of `[mcp.<name>]`.
    pub sandbox: Sandbox,
    /// The limits of all these programs; `program` of `[mcp.<name>]` adds to them.
    pub program: ProgramLimits,
    /// True if these hosts may be loopback or private ones, and used without TLS.
    pub allow_private: bool,
}

impl ToolPolicy {
    /// Checks that a manifest may name this URL.
    ///
    /// # Errors
    /// A sentence with the line to add to the configuration.
    pub fn admits(&self, url: &Url) -> Result<(), String> {
        let host = url.host_str().unwrap_or_default();
        let with_port = url.port().map(|port| format!("{host}:{port}"));
        let fits = |allowed: &str| {
            names_host(allowed, host)
                || with_port.as_deref().is_some_and(|host| allowed.eq_ignore_ascii_case(host))
        };
        if !self.allowed_hosts.iter().any(|allowed| fits(allowed)) {
            return Err(format!(
                "its manifest names the address {host}, which is not among `allowed_hosts` of [tool_policy]"
            ));
        }
        if url.scheme() != "https" && !self.allow_private {
            return Err(format!("its manifest names the address {host} without TLS; write https"));
        }
        Ok(())
    }

    /// Returns the path of a file that a document names.
    ///
    /// # Errors
    /// A sentence with the line to add to the configuration.
    pub fn admits_file(&self, path: &str) -> Result<PathBuf, String> {
        let full = match path.strip_prefix("~/") {
            Some(rest) => std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(rest),
            None => PathBuf::from(path),
        };
        let goes_up = full.components().any(|part| matches!(part, Component::ParentDir));
        if full.is_absolute()
            && !goes_up
            && self.allowed_files.iter().any(|allowed| full.starts_with(allowed))
        {
            return Ok(full);
        }
        Err(format!(
            "its document names the file {path}, which is not among `allowed_files` of [tool_policy]"
        ))
    }

    /// Returns the secret that a manifest sends to a URL.
    ///
    /// # Errors
    /// A sentence with the line to add to the configuration.
    pub fn secret(&self, name: &str, url: &Url) -> Result<&SecretRef, String> {
        let secret = self.secrets.get(name).ok_or_else(|| {
            format!("its manifest names the secret {name}, which is not among `secrets` of [tool_policy]")
        })?;
        match secret.is_bound_to(url) {
            true => Ok(secret.reference()),
            false => {
                let (host, port) =
                    (url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default());
                Err(format!(
                    "its manifest sends the secret {name} to {host}:{port}, to which it is not bound; {BIND}"
                ))
            }
        }
    }
}

/// The line to add for a secret.
pub const BIND: &str = "add the host to its `hosts` in [tool_policy.secrets]: { secret = \"env:NAME\", hosts = [\"HOST:PORT\"] }";

/// A secret with the hosts to which it may be sent: `"env:NAME"`, or `{ secret = "env:NAME", hosts = ["HOST:PORT"] }`.
/// Without hosts, only credentials for one tool of the registry use it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub enum BoundSecret {
    /// The reference alone.
    Reference(SecretRef),
    /// The reference with hosts.
    To(SecretTerms),
}

/// The table form of a [`BoundSecret`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretTerms {
    /// The reference.
    secret: SecretRef,
    /// `host` with the default port of its scheme, `host:port`, or either with `*.domain` as its host.
    #[serde(default)]
    hosts: Vec<String>,
}

impl<'de> Deserialize<'de> for BoundSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Each form has its own message, which an untagged enum would lose.
        let value = Value::deserialize(deserializer)?;
        match value {
            Value::String(_) => SecretRef::deserialize(value).map(Self::Reference),
            value => SecretTerms::deserialize(value).map(Self::To),
        }
        .map_err(D::Error::custom)
    }
}

impl BoundSecret {
    /// Returns its reference.
    #[must_use]
    pub fn reference(&self) -> &SecretRef {
        match self {
            Self::Reference(secret) => secret,
            Self::To(terms) => &terms.secret,
        }
    }

    /// Returns true if it may be sent to the host and the port of a URL.
    #[must_use]
    pub fn is_bound_to(&self, url: &Url) -> bool {
        let Self::To(terms) = self else { return false };
        let host = url.host_str().unwrap_or_default();
        terms.hosts.iter().any(|bound| {
            let parts =
                bound.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
            match parts {
                Some((name, port)) => names_host(name, host) && url.port_or_known_default() == Some(port),
                None => names_host(bound, host) && url.port().is_none(),
            }
        })
    }
}

/// Returns true if a host of the configuration, `host` or `*.domain`, is this one.
fn names_host(allowed: &str, host: &str) -> bool {
    allowed.eq_ignore_ascii_case(host)
        || allowed.strip_prefix('*').is_some_and(|domain| {
            domain.starts_with('.') && host.len() > domain.len() && ends_with(host, domain)
        })
}

fn ends_with(host: &str, domain: &str) -> bool {
    host.to_ascii_lowercase().ends_with(&domain.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_goes_only_where_it_is_bound_to() {
        let policy: ToolPolicy = serde_json::from_str(
            r#"{"secrets": {"FREE": "env:A", "CRM": {"secret": "env:B", "hosts": ["crm.example", "*.crm.example:8443"]}}}"#,
        )
        .unwrap();
        let may = |name: &str, text: &str| policy.secret(name, &Url::parse(text).unwrap()).is_ok();
        for (url, bound) in [
            ("https://crm.example/x", true),
            ("https://CRM.example:443/x", true),
            ("https://a.crm.example:8443/", true),
            ("https://crm.example:8443/", false),
            ("https://a.crm.example/", false),
            ("https://crm.example.evil.example/", false),
            ("https://evilcrm.example/", false),
        ] {
            assert_eq!(may("CRM", url), bound, "{url}");
            assert!(!may("FREE", url), "{url}");
        }
        for bad in [
            r#"{"secrets": {"A": "sk-live-1"}}"#,
            r#"{"secrets": {"A": {"secret": "sk-live-1"}}}"#,
            r#"{"secrets": {"A": {"secret": "env:A", "host": ["a"]}}}"#,
        ] {
            let error = serde_json::from_str::<ToolPolicy>(bad).unwrap_err().to_string();
            assert!(!error.contains("sk-live"), "{error}");
        }
    }

    #[test]
    fn nothing_is_allowed_unless_it_is_named() {
        let url = |text: &str| Url::parse(text).unwrap();
        let none = ToolPolicy::default();
        assert!(none.admits(&url("https://api.example.com/")).unwrap_err().contains("allowed_hosts"));
        assert!(none.secret("CRM", &url("https://a.example/")).unwrap_err().contains("[tool_policy]"));
        let files = ToolPolicy { allowed_files: vec!["/etc/keys".into()], ..ToolPolicy::default() };
        assert!(files.admits_file("/etc/keys/a.pem").is_ok() && files.admits_file("/etc/keys").is_ok());
        for bad in ["/etc/keysmith", "/etc/keys/../passwd", "etc/keys/a.pem", "/etc/shadow"] {
            assert!(files.admits_file(bad).unwrap_err().contains("allowed_files"), "{bad}");
        }
        let some = ToolPolicy {
            allowed_hosts: ["api.example.com", "*.tools.example", "h.example:8443"].map(str::to_owned).into(),
            ..ToolPolicy::default()
        };
        for good in [
            "https://api.example.com/x",
            "https://API.example.com",
            "https://a.b.tools.example",
            "https://h.example:8443/",
        ] {
            assert_eq!(some.admits(&url(good)), Ok(()), "{good}");
        }
        for bad in [
            "https://example.com/",
            "https://api.example.com.evil.example/",
            "https://tools.example/",
            "https://eviltools.example/",
            "https://h.example/",
            "http://api.example.com/",
        ] {
            assert!(some.admits(&url(bad)).is_err(), "{bad}");
        }
    }
}
