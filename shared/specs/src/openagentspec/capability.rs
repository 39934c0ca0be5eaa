//! Capabilities and their restrictions (OAS-21 … OAS-36).

use super::shape::CAPABILITY;
use crate::Names;
use crate::expression::Capabilities;
use crate::name::{self, Reference};
use crate::problem::Problems;
use crate::shape::{Shape, check};
use crate::tree::{Entry, Node};
use crate::{expression, suggest};
use turnstone_domain::agent::delegation::{Delegate, Target};
use turnstone_domain::agent::{Capability, Restriction};
use turnstone_domain::policy::lint::ExpressionPlace;

/// Reads the capabilities in document order.
pub(super) fn read(root: &Node, names: Option<&Names<'_>>, problems: &mut Problems) -> Vec<Capability> {
    let entries = root.get("capabilities").map(Node::entries).unwrap_or_default();
    let own: Vec<&str> = entries.iter().map(|entry| Reference::parse(&entry.key).name()).collect();
    let declared = declared(root);
    let mut capabilities = Vec::with_capacity(entries.len());
    for entry in entries {
        resolve(root, entry, names, problems);
        check_identity(entry, names, problems);
        let what = format!("capabilities.{}", entry.key);
        if !entry.value.is_null() {
            check(&entry.value, &Shape::Object(&CAPABILITY), &what, "OAS-15", problems);
        }
        let flag = |key: &str| entry.value.get(key).and_then(Node::flag).unwrap_or(true);
        let name = called(&entry.key, &own);
        let mut restriction = |key: &str| {
            let place = match key {
                "input_restriction" => ExpressionPlace::Input(name.clone()),
                _ => ExpressionPlace::Output(name.clone()),
            };
            restriction(root, (&entry.value, key, &what), (&declared, place, names), problems)
        };
        capabilities.push(Capability {
            input_restriction: restriction("input_restriction"),
            output_restriction: restriction("output_restriction"),
            collect_results: flag("collect_results"),
            user_identity: flag("user_identity"),
            static_identity: entry.value.get("static_identity").and_then(Node::text).map(str::to_owned),
            target: target(&entry.key),
            ..Capability::named(name.clone())
        });
    }
    capabilities
}

/// Checks a static identity, which is for a tool that takes credentials (OAS-27): others could not be called
/// with it. Agents work for the calling user.
fn check_identity(entry: &Entry, names: Option<&Names<'_>>, problems: &mut Problems) {
    let Some(node) = entry.value.get("static_identity").filter(|node| !node.is_null()) else { return };
    let key = crate::shape::shortened(&entry.key);
    let what = format!("`capabilities.{key}.static_identity`");
    let agents = format!("{what} has no effect: an agent works for the user of its caller");
    match (Reference::parse(&entry.key), names) {
        (Reference::Local(_) | Reference::Remote { .. }, _) => problems.warning(node.at, "OAS-27", agents),
        (Reference::Bare(name), Some(names)) if names.keyless.contains(&name) => {
            problems.error(node.at, "OAS-27", format!("{what} cannot be used: `{key}` takes no credentials"));
        }
        (Reference::Bare(name), Some(names)) if names.tools.contains(&name) => {}
        (Reference::Bare(name), Some(names)) if names.may_have_tool(name) => {
            let message = format!(
                "{what} cannot be used: tools of MCP servers have the credentials of their section, and take no others"
            );
            problems.error(node.at, "OAS-27", message);
        }
        (Reference::Bare(name), Some(names)) if names.agents.contains(&name) => {
            problems.warning(node.at, "OAS-27", agents);
        }
        _ => {}
    }
}

/// Returns the capabilities, by the names that expressions of the document use.
pub(super) fn declared(root: &Node) -> Capabilities {
    let entries = root.get("capabilities").map(Node::entries).unwrap_or_default();
    let own: Vec<&str> = entries.iter().map(|entry| Reference::parse(&entry.key).name()).collect();
    let dropped = |entry: &&Entry| entry.value.get("collect_results").and_then(Node::flag) == Some(false);
    Capabilities {
        names: entries.iter().map(|entry| called(&entry.key, &own)).collect(),
        dropped: entries.iter().filter(dropped).map(|entry| called(&entry.key, &own)).collect(),
    }
}

/// Returns the name of a capability: an agent's name alone, unless another capability has that name too
/// (agents brief §1.5).
fn called(key: &str, own: &[&str]) -> String {
    let reference = Reference::parse(key);
    match reference {
        Reference::Local(name) | Reference::Remote { name, .. }
            if own.iter().filter(|other| **other == name).count() == 1 =>
        {
            name.to_owned()
        }
        _ => key.to_owned(),
    }
}

/// Returns the target of a capability: certainly an agent (OAS-13), or by a bare name, which means the tool
/// if there is one (OAS-12).
fn target(key: &str) -> Target {
    match Reference::parse(key) {
        Reference::Local(name) => Target::Agent(Delegate::named(name)),
        Reference::Bare(_) => Target::Named,
        Reference::Remote { rest, .. } => Target::Remote { url: format!("https://{rest}") },
    }
}

/// Checks that the key refers to a tool or an agent of this server.
fn resolve(root: &Node, entry: &Entry, names: Option<&Names<'_>>, problems: &mut Problems) {
    let key = crate::shape::shortened(&entry.key);
    let reference = Reference::parse(&entry.key);
    let name = reference.name();
    if let Err((rule, message)) = name::check(name) {
        problems.error(entry.at, rule, format!("`capabilities.{key}`: {message}"));
        return;
    }
    let own = root.get("name").and_then(Node::text) == Some(name);
    let known = |list: &[&str]| list.contains(&name);
    match (reference, names) {
        (Reference::Remote { rest, .. }, _) if !name::is_address(rest) => {
            let message = format!("`{key}` is not written `oagent://host/path/name`");
            problems.error(entry.at, "OAS-11", message);
        }
        (Reference::Remote { host, .. }, Some(names)) if !names.remote.contains(&host) => {
            let message = match names.remote {
                [] => format!(
                    "`{key}` is an agent on another server, and those are not asked; add the host to `hosts` of [remote]"
                ),
                _ => format!("`{key}` is an agent on {host}, which is not among `hosts` of [remote]"),
            };
            problems.error(entry.at, "OAS-11", message);
        }
        (Reference::Remote { .. }, _) => {}
        (Reference::Bare(_), Some(names)) if names.may_have_tool(name) => {}
        (_, _) if own => {
            let message =
                format!("`{key}` may ask itself; only the delegation depth and `max_jobs_per_tree` end that");
            problems.warning(entry.at, "OAS-A18", message);
        }
        (_, None) => {}
        (_, Some(names)) if known(names.agents) => {}
        (_, Some(names)) if names.open => {
            let message = format!("`{key}` is not there yet; calls of it fail until it is");
            problems.warning(entry.at, "OAS-A17", message);
        }
        (Reference::Local(_), Some(names)) => {
            let hint = suggest::hint(name, names.agents.iter().copied());
            let message = format!("there is no agent `{name}` on this server{hint}; register it first");
            problems.error(entry.at, "OAS-10", message);
        }
        (Reference::Bare(_), Some(names)) => {
            let hint = suggest::hint(name, names.tools.iter().chain(names.agents).copied());
            let message = format!(
                "there is no tool or agent `{key}` on this server{hint}; add it to the tool registry, register the agent, or \
                 remove it here"
            );
            problems.error(entry.at, "OAS-21", message);
        }
    }
}

fn restriction(
    root: &Node,
    (capability, key, what): (&Node, &str, &str),
    (own, place, names): (&Capabilities, ExpressionPlace, Option<&Names<'_>>),
    problems: &mut Problems,
) -> Restriction {
    let Some(node) = capability.get(key).filter(|node| !node.is_null()) else {
        return Restriction::default();
    };
    let what = format!("{what}.{key}");
    let given = |name: &str| node.get(name).filter(|value| !value.is_null());
    let reviewer = given("require_review");
    let assertion = given("assertion");
    if reviewer.is_none() && assertion.is_none() {
        let rule = if key == "input_restriction" { "OAS-28" } else { "OAS-29" };
        problems.warning(
            node.at,
            rule,
            format!("`{what}` restricts nothing: it has no `assertion` and no `require_review`"),
        );
    }
    if let Some((node, reviewer)) = reviewer.and_then(|node| Some((node, node.text()?))) {
        check_reviewer(root, (node, reviewer), &what, names, problems);
    }
    let compile = |node: &Node| {
        expression::over_engagement(node, (own, place), &format!("{what}.assertion"), "OAS-33", problems)
    };
    Restriction {
        require_review: reviewer.and_then(Node::text).map(str::to_owned),
        assertion: assertion.and_then(compile),
        ..Restriction::default()
    }
}

/// Checks a reviewer (OAS-30): `oagent://name` is an agent of this server, and a bare name a user or a group of users.
/// The server knows the users only if the configuration names them.
fn check_reviewer(
    root: &Node,
    (node, reviewer): (&Node, &str),
    what: &str,
    names: Option<&Names<'_>>,
    problems: &mut Problems,
) {
    let own = root.get("name").and_then(Node::text);
    let agent = match Reference::parse(reviewer) {
        Reference::Local(name) => Some(name),
        _ => None,
    };
    if own.is_some() && own == agent {
        let message = format!(
            "`{what}.require_review`: the agent reviews itself; only the delegation depth and `max_jobs_per_tree` end that"
        );
        problems.warning(node.at, "OAS-A18", message);
    }
    let mut refuse = |why: String| {
        problems.error(node.at, "OAS-30", format!("`{what}.require_review`: {why}"));
    };
    match Reference::parse(reviewer) {
        Reference::Local(name) => {
            if let Err((_, message)) = name::check(name) {
                refuse(message);
            } else if let Some(names) =
                names.filter(|names| own != Some(name) && !names.agents.contains(&name))
            {
                let hint = suggest::hint(name, names.agents.iter().copied());
                refuse(format!("there is no agent `{name}` on this server{hint}; register it first"));
            }
        }
        Reference::Bare("anonymous") => {
            refuse("`anonymous` is the name of an unknown user, who cannot review".to_owned());
        }
        Reference::Bare(id) if id.chars().any(|c| c.is_whitespace() || c.is_control()) || id.len() > 253 => {
            refuse("a reviewer is the id or the address of a user, or an agent, without spaces".to_owned());
        }
        Reference::Bare(id) => {
            let Some((names, known)) = names.and_then(|names| Some((names, names.reviewers?))) else {
                return;
            };
            if !known.contains(&id) {
                let hint = match names.agents.contains(&id) {
                    true => format!("; the agent is `oagent://{id}`"),
                    false => suggest::hint(id, known.iter().copied()),
                };
                refuse(format!(
                    "there is no user or group `{id}` who reviews on this server{hint}; add it to `users` of [reviews]"
                ));
            }
        }
        _ => {
            refuse(format!("`{reviewer}` is an agent on another server, and those are not asked for reviews"))
        }
    }
}
