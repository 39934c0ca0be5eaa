//! `[tool_policy]`: the hosts and secrets that manifests may use beyond the registry. By default there are
//! none.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Component, PathBuf};
use turnstone_telemetry::SecretRef;
use url::Url;

/// The hosts and secrets that a manifest may name by itself.
///
/// ```toml
/// [tool_policy]
/// allowed_hosts = ["api.example.com", "*.tools.example.com"]
/// secrets = { CRM_KEY = "env:CRM_KEY" }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolPolicy {
    /// The hosts that an `endpoint` or the URL of an MCP server may name: `host`, `host:port` or `*.domain`.
    pub allowed_hosts: Vec<String>,
    /// The secrets that a manifest may send there, by their names in `${NAME}`.
    pub secrets: BTreeMap<String, SecretRef>,
    /// The programs that an Agent Spec document may start as MCP servers (`StdioTransport`), as the document names them.
    pub allowed_commands: Vec<String>,
    /// The files, and the folders with files, from which an Agent Spec document may name keys, certificates and
    /// credentials.
    pub allowed_files: Vec<PathBuf>,
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
            allowed.eq_ignore_ascii_case(host)
                || with_port.as_deref().is_some_and(|host| allowed.eq_ignore_ascii_case(host))
                || allowed.strip_prefix('*').is_some_and(|domain| {
                    domain.starts_with('.') && host.len() > domain.len() && ends_with(host, domain)
                })
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

    /// Checks that a document may start this program.
    ///
    /// # Errors
    /// A sentence with the line to add to the configuration.
    pub fn admits_command(&self, command: &str) -> Result<(), String> {
        if self.allowed_commands.iter().any(|allowed| allowed == command) {
            return Ok(());
        }
        Err(format!(
            "its document starts the program {command}, which is not among `allowed_commands` of [tool_policy]"
        ))
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

    /// Returns the secret that a manifest names.
    ///
    /// # Errors
    /// A sentence with the line to add to the configuration.
    pub fn secret(&self, name: &str) -> Result<&SecretRef, String> {
        self.secrets.get(name).ok_or_else(|| {
            format!("its manifest names the secret {name}, which is not among `secrets` of [tool_policy]")
        })
    }
}

fn ends_with(host: &str, domain: &str) -> bool {
    host.to_ascii_lowercase().ends_with(&domain.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allowed_unless_it_is_named() {
        let url = |text: &str| Url::parse(text).unwrap();
        let none = ToolPolicy::default();
        assert!(none.admits(&url("https://api.example.com/")).unwrap_err().contains("allowed_hosts"));
        assert!(none.secret("CRM").unwrap_err().contains("[tool_policy]"));
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
