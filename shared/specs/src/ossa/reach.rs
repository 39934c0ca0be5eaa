//! The address and the credential of a tool in a manifest. Secrets are in it by reference only (OSSA security
//! model: never in manifests).

use super::tools::RULE;
use crate::Names;
use crate::problem::Problems;
use crate::tree::{Content, Node};
use turnstone_domain::agent::{Endpoint, Reached, ToolAuth};

/// The default of `auth.header`, for keys.
const KEY_HEADER: &str = "X-API-Key";

/// Words that mark the name of a key as that of a credential.
const SECRET_WORDS: [&str; 7] = ["key", "apikey", "token", "secret", "password", "credential", "credentials"];

/// Returns true if the entry means all tools of an MCP server: neither a name nor capabilities select some. A
/// `name` without a `server` is the server's.
pub(super) fn means_all(tool: &Node) -> bool {
    let listed = tool.get("capabilities").is_some_and(|list| !list.items().is_empty());
    kind(tool) == "mcp" && !listed && (tool.get("name").is_none() != tool.get("server").is_none())
}

/// Reads the address of a tool.
pub(super) fn read(tool: &Node, names: Option<&Names<'_>>, problems: &mut Problems) -> Reached {
    let text = |key: &str| tool.get(key).and_then(Node::text);
    match kind(tool) {
        "mcp" => {
            unused(
                tool,
                &["auth", "endpoint"],
                "[mcp.<name>] of the server's configuration has it",
                problems,
            );
            let binding = tool.at_path(&["transport", "binding"]).and_then(Node::text);
            let server = text("server").or(binding).or_else(|| text("name")).unwrap_or_default().to_owned();
            check_server(tool, &server, names, problems);
            Reached::Mcp { server }
        }
        "http" if tool.get("endpoint").is_some() => {
            unused(tool, &["server"], "an HTTP tool is reached at its `endpoint`", problems);
            match endpoint(tool, problems) {
                Some(endpoint) => Reached::Http(endpoint),
                None => Reached::Unserved { kind: "http with this `auth`".to_owned() },
            }
        }
        kind @ ("grpc" | "kubernetes" | "a2a") => Reached::Unserved { kind: kind.to_owned() },
        _ => {
            let why = "this server's tool registry says how a tool is reached";
            unused(tool, &["auth", "endpoint", "server"], why, problems);
            Reached::Registry
        }
    }
}

fn kind(tool: &Node) -> &str {
    tool.get("type").and_then(Node::text).unwrap_or_default()
}

fn unused(tool: &Node, keys: &[&str], why: &str, problems: &mut Problems) {
    for key in keys {
        if let Some(node) = tool.get(key) {
            problems.warning(node.at, RULE, format!("`{key}` of this tool is not used: {why}"));
        }
    }
}

pub(super) fn is_url(server: &str) -> bool {
    server.starts_with("http://") || server.starts_with("https://")
}

fn check_server(tool: &Node, server: &str, names: Option<&Names<'_>>, problems: &mut Problems) {
    let at = tool.get("server").map_or(tool.at, |node| node.at);
    let listed = tool.get("capabilities").is_some_and(|list| !list.items().is_empty());
    if is_url(server) {
        if tool.get("name").is_none() && !listed {
            let message = "the tools of a `server` that is a URL must be named: add `capabilities`";
            problems.error(at, RULE, message);
        }
        return;
    }
    if let Some(names) = names
        && !server.is_empty()
        && !names.servers.contains(&server)
    {
        let show = crate::shape::shortened(server);
        let hint = crate::suggest::hint(server, names.servers.iter().copied());
        let message = format!(
            "there is no MCP server `{show}` on this server{hint}: the agent runs without its tools until [mcp.{show}] is \
             configured"
        );
        problems.warning(at, RULE, message);
    }
}

/// Returns the endpoint of an HTTP tool; `None` when the kind of its credential is not supported.
fn endpoint(tool: &Node, problems: &mut Problems) -> Option<Endpoint> {
    let node = tool.get("endpoint")?;
    let url = node.text().unwrap_or_default().to_owned();
    if !is_url(&url) {
        problems.error(node.at, RULE, "`endpoint` must be a URL that begins with `https://`");
    }
    let method =
        tool.at_path(&["config", "method"]).and_then(|node| Some((node, node.text()?.to_ascii_uppercase())));
    if let Some((node, method)) = &method
        && !["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method.as_str())
    {
        problems.error(node.at, RULE, "`config.method` must be GET, POST, PUT, PATCH or DELETE");
    }
    Some(Endpoint { url, method: method.map(|(_, method)| method), auth: auth(tool, problems)? })
}

/// Returns the credential, if there is one; `None` when its kind is not supported.
fn auth(tool: &Node, problems: &mut Problems) -> Option<Option<ToolAuth>> {
    let Some(auth) = tool.get("auth") else { return Some(None) };
    let text = |key: &str| auth.get(key).and_then(Node::text);
    let (header, prefix) = match text("type").unwrap_or("none") {
        "none" => return Some(None),
        "bearer" => ("Authorization", "Bearer "),
        "apikey" => (text("header").unwrap_or(KEY_HEADER), ""),
        other => {
            let message = format!(
                "`auth.type: {other}` is not served: the agent runs without this tool; use bearer or apikey"
            );
            problems.warning(auth.at, RULE, message);
            return None;
        }
    };
    let reference = ["credentials", "credential", "token", "key"].iter().find_map(|key| text(key));
    let Some(secret) = reference.and_then(inside) else {
        let message =
            "`auth` names no secret: write `credentials: ${NAME}`, and NAME in [tool_policy.secrets]";
        problems.error(auth.at, RULE, message);
        return Some(None);
    };
    let (header, prefix, secret) = (header.to_owned(), prefix.to_owned(), secret.to_owned());
    Some(Some(ToolAuth { header, prefix, secret }))
}

/// Returns the text between `${` and `}`.
fn inside(text: &str) -> Option<&str> {
    text.strip_prefix("${")?.strip_suffix('}').filter(|name| !name.is_empty())
}

/// Refuses a credential in the manifest itself. The message does not repeat the value.
pub(super) fn refuse_literal_secrets(tool: &Node, problems: &mut Problems) {
    for section in ["auth", "config", "health_check"] {
        if let Some(node) = tool.get(section) {
            look(node, problems);
        }
    }
}

fn look(node: &Node, problems: &mut Problems) {
    match &node.content {
        Content::List(items) => items.iter().for_each(|item| look(item, problems)),
        Content::Map(entries) => {
            for entry in entries {
                let literal = entry.value.text().is_some_and(|text| inside(text).is_none());
                if literal && names_a_secret(&entry.key) {
                    let key = crate::shape::shortened(&entry.key);
                    let message = format!(
                        "`{key}` holds a credential: a secret is never in a manifest; write a reference such as `${{NAME}}`"
                    );
                    problems.error(entry.at, RULE, message);
                }
                look(&entry.value, problems);
            }
        }
        _ => {}
    }
}

fn names_a_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.split(['_', '-', '.']).any(|word| SECRET_WORDS.contains(&word))
}
