//! The addresses that a manifest gives for its tools (OSSA `spec.tools[]`, RS-11).

use super::Capability;
use serde::{Deserialize, Serialize};

/// The origin of a capability in the manifest, and its address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ToolOrigin {
    /// The position in `spec.tools`, from 0.
    pub tool_index: u32,
    /// The address. A tool of the server's registry with the capability's name takes precedence.
    pub reached: Reached,
}

/// The address of a tool.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Reached {
    /// The tool of this name in the server's registry: `function`, `custom`, or a type without an address.
    Registry,
    /// By an MCP server: the name of one that is configured, or its URL.
    Mcp {
        /// The server.
        server: String,
    },
    /// A request to a URL that the manifest names.
    Http(Endpoint),
    /// A type that this version does not support: `grpc`, `kubernetes`, `a2a`.
    Unserved {
        /// The type in the manifest.
        kind: String,
    },
}

/// The address of an HTTP tool that a manifest names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Endpoint {
    /// The URL; `{name}` in its path is replaced by the argument of that name.
    pub url: String,
    /// The method in capitals; POST when the manifest names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<ToolAuth>,
}

/// The credential of a tool, by reference.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ToolAuth {
    /// The header that carries it.
    pub header: String,
    /// The text before the secret, such as `Bearer ` with its blank.
    pub prefix: String,
    /// The name of the secret: the text between `${` and `}`.
    pub secret: String,
}

/// All tools of an MCP server that this agent may see, named `<server>.<tool>`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Toolset {
    /// The name of a configured server.
    pub server: String,
    /// The settings that apply to all of them.
    pub like: Capability,
}

impl Toolset {
    /// Returns the capability for one of the server's tools. Its description and schema come from the server.
    #[must_use]
    pub fn capability(&self, name: impl Into<String>) -> Capability {
        Capability { name: name.into(), description: None, input_schema: None, ..self.like.clone() }
    }

    /// Returns true if a tool of this name belongs to the server.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        name.strip_prefix(self.server.as_str()).is_some_and(|rest| rest.len() > 1 && rest.starts_with('.'))
    }
}

/// Returns the name of a tool in OpenAgentSpec documents. Capability names follow RFC 1123 (OAS-03 to OAS-07), and
/// names of MCP tools do not. Capitals become small letters, and each `_` becomes `-`. Other characters at the ends of
/// a part between dots are left out, and so are empty parts.
#[must_use]
pub fn capability_name(tool: &str) -> String {
    let name = tool.to_ascii_lowercase().replace('_', "-");
    let parts = name.split('.').map(|part| part.trim_matches('-')).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::capability_name;

    #[test]
    fn capability_names_follow_rfc_1123() {
        for (tool, name) in [
            ("papers.search_papers", "papers.search-papers"),
            ("github.search-issues", "github.search-issues"),
            ("My_Files.readFile", "my-files.readfile"),
            ("a.b_.._c-.d", "a.b.c.d"),
        ] {
            assert_eq!(capability_name(tool), name, "{tool}");
        }
    }
}
