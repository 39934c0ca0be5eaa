//! How a manifest says that its tools are reached (OSSA `spec.tools[]`, RS-11).

use super::Capability;
use serde::{Deserialize, Serialize};

/// Where in the manifest a capability comes from, and how it is reached.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ToolOrigin {
    /// The position in `spec.tools`, from 0.
    pub tool_index: u32,
    /// How it is reached. A tool of the server's registry that has the capability's name goes before it.
    pub reached: Reached,
}

/// How a tool is reached.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Reached {
    /// By its name in the server's registry: `function`, `custom`, or a type that says nothing else.
    Registry,
    /// By an MCP server: the name of one that is configured, or its URL.
    Mcp {
        /// The server.
        server: String,
    },
    /// By a request to an address that the manifest names.
    Http(Endpoint),
    /// By something that this version does not speak: `grpc`, `kubernetes`, `a2a`.
    Unserved {
        /// The type as the manifest says it.
        kind: String,
    },
}

/// The address of an HTTP tool that a manifest names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Endpoint {
    /// The URL; `{name}` in its path stands for the argument of that name.
    pub url: String,
    /// The method in capitals; POST when the manifest says nothing.
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
    /// What stands before it, such as `Bearer ` with its blank.
    pub prefix: String,
    /// The name of the secret: what stands between `${` and `}`.
    pub secret: String,
}

/// All tools of an MCP server that this agent may see, named `<server>.<tool>`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Toolset {
    /// The name of a configured server.
    pub server: String,
    /// What is said of all of them.
    pub like: Capability,
}

impl Toolset {
    /// The capability that one of its tools is for the agent. What it does and takes, its server says.
    #[must_use]
    pub fn capability(&self, name: impl Into<String>) -> Capability {
        Capability { name: name.into(), description: None, input_schema: None, ..self.like.clone() }
    }

    /// Whether a tool of this name would be one of these.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        name.strip_prefix(self.server.as_str()).is_some_and(|rest| rest.len() > 1 && rest.starts_with('.'))
    }
}

/// Returns the name by which an OpenAgentSpec document may name a tool: capability names follow RFC 1123 (OAS-03 to
/// OAS-07), and names of MCP tools do not. Capitals become small letters and each `_` a `-`; what then begins or ends a
/// part between dots as no letter or digit is left out, and so is an empty part.
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
