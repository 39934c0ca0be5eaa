//! The configuration of an MCP server: a section `[mcp.<name>]` of `turnstone.toml`.

use crate::tool::address_guard::{check_form, check_url};
use crate::tool::header::{HeaderText, check_headers, names_a_secret};
use crate::tool::program::{ProgramLimits, Sandbox};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use turnstone_specs::agent_spec::AdmittedProgram;
use url::Url;

/// An MCP server: a command that communicates over its standard input and output, or a URL (streamable HTTP).
///
/// ```toml
/// [mcp.github]
/// command = ["github-mcp-server", "stdio"]
/// env = { GITHUB_TOKEN = { secret = "env:GITHUB_TOKEN" } }
/// tools = ["search_issues"]
///
/// [mcp.tickets]
/// url = "https://tickets.example/mcp"
/// headers = { Authorization = { secret = "env:TICKETS_KEY", prefix = "Bearer " } }
/// pin = true
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfig {
    /// The program and its arguments. It starts when a turn first needs it, and ends with the worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Variables of the program, by value or by reference to a secret. It inherits only `PATH`, `HOME`,
    /// `LANG`, `LC_ALL`, `TMPDIR` and `TZ`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, HeaderText>,
    /// True for the program of a document. It inherits no variable of the worker.
    #[serde(skip)]
    pub of_document: bool,
    /// The folder in which the program of a document starts; the worker's own folder without it.
    #[serde(skip)]
    pub cwd: Option<PathBuf>,
    /// The limits of the program, beside those of `[tool_policy]`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub program: ProgramLimits,
    /// The address of the server, instead of `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// True for the older HTTP transport, with a stream of events from the server. Only documents of Agent Spec ask for
    /// it (`SSETransport`).
    #[serde(skip)]
    pub sse: bool,
    /// Headers of every request to `url`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, HeaderText>,
    /// The longest one call may take, in milliseconds. Default: 30000.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// The longest that start and handshake, or listing its tools, may take, in milliseconds. A turn
    /// continues without the tools of a slower server, or with its last known list. Default: 30000.
    #[serde(default = "default_connect_timeout_ms")]
    pub connect_timeout_ms: u64,
    /// The tools that agents may see. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The tools that may be called twice with the same key without a second effect. They add to those that
    /// the server announces with `idempotentHint` or `readOnlyHint`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub idempotent: Vec<String>,
    /// The rule for changes of its tools.
    #[serde(default)]
    pub pin: Pin,
    /// Turns the address guard off for `url`, so that it may name loopback and private networks.
    #[serde(default)]
    pub allow_private: bool,
    /// The most bytes of an outcome; a larger one is a failure. Default: 1 MiB.
    #[serde(default = "default_max_response_bytes")]
    pub max_response_bytes: usize,
}

/// The reference for a server's tools; tools that differ from it are refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Pin {
    /// `true`: the server's offer when this worker first asked it. `false`: none.
    First(bool),
    /// The digest that `turnstone mcp check` shows.
    Digest(String),
}

impl Default for Pin {
    fn default() -> Self {
        Self::First(false)
    }
}

/// The `PATH` of programs that documents start.
const PATH_OF_DOCUMENTS: &str = "/usr/local/bin:/usr/bin:/bin";

fn is_default(limits: &ProgramLimits) -> bool {
    *limits == ProgramLimits::default()
}

fn default_timeout_ms() -> u64 {
    30_000
}

fn default_connect_timeout_ms() -> u64 {
    30_000
}

fn default_max_response_bytes() -> usize {
    1024 * 1024
}

impl McpConfig {
    /// Returns a server behind a URL, with the defaults.
    #[must_use]
    pub fn of_url(url: String, allow_private: bool) -> Self {
        Self {
            command: Vec::new(),
            env: BTreeMap::new(),
            of_document: false,
            cwd: None,
            program: ProgramLimits::default(),
            url: Some(url),
            sse: false,
            headers: BTreeMap::new(),
            timeout_ms: default_timeout_ms(),
            connect_timeout_ms: default_connect_timeout_ms(),
            tools: None,
            idempotent: Vec::new(),
            pin: Pin::default(),
            allow_private,
            max_response_bytes: default_max_response_bytes(),
        }
    }

    /// Returns a server behind a program that a document starts, with the defaults. Its `PATH` is `PATH_OF_DOCUMENTS`,
    /// unless the configuration lets the document set another.
    #[must_use]
    pub fn of_document(admitted: AdmittedProgram) -> Self {
        let AdmittedProgram { program, args, env, cwd } = admitted;
        let of_document =
            env.into_iter().map(|(name, value)| (name.clone(), HeaderText::of_document(&name, &value)));
        let path = ("PATH".to_owned(), HeaderText::Literal(PATH_OF_DOCUMENTS.to_owned()));
        Self {
            command: std::iter::once(program.display().to_string()).chain(args).collect(),
            env: std::iter::once(path).chain(of_document).collect(),
            of_document: true,
            program: ProgramLimits { write: cwd.iter().cloned().collect(), ..ProgramLimits::default() },
            cwd,
            url: None,
            ..Self::of_url(String::new(), false)
        }
    }

    /// Checks the rules that the types do not express.
    ///
    /// # Errors
    /// A sentence that names the key.
    pub fn check(&self) -> Result<(), String> {
        match (&self.url, self.command.as_slice()) {
            (Some(_), [_, ..]) => return Err("has both `command` and `url`; keep one".to_owned()),
            (None, []) => return Err("needs a `command` or a `url`".to_owned()),
            (None, [program, ..]) if program.is_empty() => {
                return Err("command: the program's name is empty".to_owned());
            }
            (None, _) if !self.headers.is_empty() => {
                return Err("headers: a program is given `env`, only a `url` takes headers".to_owned());
            }
            (Some(_), _) if !self.env.is_empty() => {
                return Err("env: only a `command` takes variables, a `url` is given `headers`".to_owned());
            }
            (Some(_), _) if !is_default(&self.program) => {
                return Err("program: only a `command` has limits".to_owned());
            }
            (Some(text), _) => {
                let url = Url::parse(text).map_err(|error| format!("url: not a URL: {error}"))?;
                let look = if self.allow_private { check_form } else { check_url };
                look(&url).map_err(|problem| format!("url: {problem}"))?;
            }
            (None, _) => {}
        }
        self.program.check(Sandbox::Best).map_err(|problem| format!("program.{problem}"))?;
        check_headers(&self.headers)?;
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(format!("env.{name}: not the name of a variable"));
            }
            if matches!(value, HeaderText::Literal(_)) && names_a_secret(name) {
                return Err(format!(
                    "env.{name}: a credential is given by reference: {{ secret = \"env:NAME\" }}"
                ));
            }
        }
        for (key, value) in [("timeout_ms", self.timeout_ms), ("connect_timeout_ms", self.connect_timeout_ms)]
        {
            if value == 0 {
                return Err(format!("{key} must be above 0"));
            }
        }
        if self.max_response_bytes == 0 {
            return Err("max_response_bytes must be above 0".to_owned());
        }
        match &self.pin {
            Pin::Digest(text) if !is_digest(text) => Err(
                "pin: write `true`, or the digest that `turnstone mcp check` shows (`sha256:` and 64 digits)"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }

    /// Returns the server's address for people: the URL without its secret parts, or the program.
    #[must_use]
    pub fn address(&self) -> String {
        match &self.url {
            Some(url) => match Url::parse(url) {
                Ok(mut url) => {
                    url.set_query(None);
                    url.to_string()
                }
                Err(_) => "a URL".to_owned(),
            },
            None => format!("stdio:{}", self.command.first().map_or("", String::as_str)),
        }
    }

    pub(super) fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.connect_timeout_ms)
    }

    pub(super) fn allows(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|allowed| allowed == tool))
    }
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Returns true if a server may have this name: its tools are named `<server>.<tool>`, so it holds no dot.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    name.len() <= 64 && !name.contains('.') && crate::tool::config::is_tool_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str) -> Result<(), String> {
        serde_json::from_str::<McpConfig>(json).map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn what_cannot_work_is_named() {
        for (json, word) in [
            (r#"{}"#, "`command` or a `url`"),
            (r#"{"command": ["a"], "url": "https://a.example/"}"#, "keep one"),
            (r#"{"command": [""]}"#, "command:"),
            (r#"{"command": ["a"], "headers": {"X": "y"}}"#, "headers:"),
            (r#"{"url": "https://a.example/", "env": {"A": "b"}}"#, "env:"),
            (r#"{"url": "nowhere"}"#, "url:"),
            (r#"{"url": "http://169.254.169.254/latest"}"#, "url:"),
            (r#"{"url": "http://127.0.0.1:1/mcp"}"#, "allow_private"),
            (r#"{"url": "https://a.example/", "headers": {"Authorization": "Bearer x"}}"#, "by reference"),
            (r#"{"command": ["a"], "env": {"GITHUB_TOKEN": "ghp_x"}}"#, "by reference"),
            (r#"{"command": ["a"], "timeout_ms": 0}"#, "timeout_ms"),
            (r#"{"command": ["a"], "pin": "sha256:12"}"#, "pin:"),
            (r#"{"command": ["a"], "timeout": 5}"#, "unknown field"),
            (r#"{"command": ["a"], "program": {"read": ["b"]}}"#, "program.read: b"),
            (r#"{"url": "https://a.example/", "program": {"network": false}}"#, "program:"),
        ] {
            let problem = check(json).unwrap_err();
            assert!(problem.contains(word) && !problem.contains("ghp_x"), "{json}: {problem}");
        }
        assert_eq!(
            check(r#"{"command": ["a", "b"], "env": {"A_TOKEN": {"secret": "env:T"}, "LANG": "C"}}"#),
            Ok(())
        );
        assert_eq!(check(r#"{"url": "http://127.0.0.1:1/mcp", "allow_private": true, "pin": true}"#), Ok(()));
    }

    #[test]
    fn an_address_shows_no_query() {
        let config = McpConfig::of_url("https://a.example/mcp?key=abc".to_owned(), false);
        assert_eq!(config.address(), "https://a.example/mcp");
        assert!(is_server_name("git-hub_2") && !is_server_name("a.b") && !is_server_name(""));
    }
}
