//! `spec.collaboration`: the delegates of the agent, and their terms (OSSA §5).
//!
//! The schema names the delegates (`delegation.allowed_agents`, `handoffs[].target_agent`). The runtime
//! semantics define the terms (`type`, `timeout_ms`, `on_failure`, `context_propagation`). They are in the
//! same sections, which are open.

use crate::Names;
use crate::name::{self, Reference};
use crate::problem::Problems;
use crate::suggest;
use crate::tree::Node;
use serde_json::{Map, Value};
use turnstone_domain::agent::delegation::{
    ContextTransfer, Delegate, DelegationMode, OnFailure, Propagation, Target,
};
use turnstone_domain::agent::{Capability, MAX_DELEGATION_DEPTH};

const RULE: &str = "OSSA-collaboration";
/// The default of `delegation.max_depth`.
const MAX_DEPTH: u32 = 3;

/// Adds the delegates to the capabilities of the agent.
pub(super) fn read(
    root: &Node,
    names: Option<&Names<'_>>,
    capabilities: &mut Vec<Capability>,
    problems: &mut Problems,
) {
    let Some(spec) = root.get("spec") else { return };
    let own = root.at_path(&["metadata", "name"]).and_then(Node::text).unwrap_or_default();
    let fallback = fallback(spec, own, names, problems);
    let part = |key: &str| spec.at_path(&["collaboration", key]);
    let section = [part("delegation"), spec.get("delegation")].into_iter().flatten().find(|node| is_on(node));
    let known = |node: &Node, problems: &mut Problems| checked(node, own, names, problems);
    let mut add = |at: &Node, capability: Capability, problems: &mut Problems| {
        if capabilities.iter().any(|other| other.name == capability.name) {
            let message = format!("`{}` is there twice; remove one", capability.name);
            problems.error(at.at, RULE, message);
        } else {
            capabilities.push(capability);
        }
    };
    if let Some(section) = section {
        let allowed = section.get("allowed_agents").map(Node::items).unwrap_or_default();
        if allowed.is_empty() {
            let message = "`allowed_agents` is empty, so no agent can be called";
            problems.warning(section.at, RULE, message);
        }
        for node in allowed {
            let Some(agent) = known(node, problems) else { continue };
            let delegate = terms(section, agent, DelegationMode::Supervisor, &fallback, problems);
            add(node, capability(delegate, None), problems);
        }
    }
    for handoff in part("handoffs").map(Node::items).unwrap_or_default() {
        let Some(node) = handoff.get("target_agent") else {
            problems.error(handoff.at, RULE, "a handoff needs a `target_agent`");
            continue;
        };
        let Some(agent) = known(node, problems) else { continue };
        let mut delegate = terms(handoff, agent, DelegationMode::Handoff, &fallback, problems);
        if let Some(transfer) =
            handoff.get("context_transfer").and_then(Node::text).and_then(ContextTransfer::parse)
        {
            delegate.context = transfer;
        }
        let conditions: Vec<&str> = handoff
            .get("conditions")
            .map(Node::items)
            .unwrap_or_default()
            .iter()
            .filter_map(Node::text)
            .collect();
        let when = (!conditions.is_empty()).then(|| {
            format!("Hands the conversation over to `{}`, when: {}.", delegate.agent, conditions.join("; "))
        });
        add(node, capability(delegate, when), problems);
    }
}

/// Returns the deepest delegation: `delegation.max_depth`, 3 by default, and never more than 10.
pub(super) fn max_depth(root: &Node) -> u32 {
    let said =
        [&["spec", "collaboration", "delegation", "max_depth"][..], &["spec", "delegation", "max_depth"]]
            .iter()
            .find_map(|path| root.at_path(path)?.integer());
    said.map_or(MAX_DEPTH, |depth| u32::try_from(depth).unwrap_or(0)).min(MAX_DELEGATION_DEPTH)
}

fn capability(delegate: Delegate, description: Option<String>) -> Capability {
    Capability { description, target: Target::Agent(delegate.clone()), ..Capability::named(delegate.agent) }
}

/// Returns the name of an agent, if it is one of this server.
fn checked(node: &Node, own: &str, names: Option<&Names<'_>>, problems: &mut Problems) -> Option<String> {
    let reference = Reference::parse(node.text()?);
    let agent = reference.name();
    if matches!(reference, Reference::Remote { .. }) {
        problems.error(node.at, "OAS-11", "agents on other servers cannot be asked in this version");
        return None;
    }
    if let Err((rule, message)) = name::check(agent) {
        problems.error(node.at, rule, message);
        return None;
    }
    if agent == own {
        warn_of_circle(node, agent, problems);
    } else if let Some(names) = names.filter(|names| !names.agents.contains(&agent)) {
        let hint = suggest::hint(agent, names.agents.iter().copied());
        let message = format!("there is no agent `{agent}` on this server{hint}; register it first");
        problems.error(node.at, RULE, message);
        return None;
    }
    Some(agent.to_owned())
}

/// Warns about an agent that delegates to itself: only the depth bounds it, and its author rarely intends it
/// (OAS-A18).
fn warn_of_circle(node: &Node, agent: &str, problems: &mut Problems) {
    let message =
        format!("`{agent}` may ask itself; only the delegation depth and `max_jobs_per_tree` end that");
    problems.warning(node.at, "OAS-A18", message);
}

fn terms(
    node: &Node,
    agent: String,
    usual: DelegationMode,
    fallback: &[String],
    problems: &mut Problems,
) -> Delegate {
    let mut wrong = |key: &str, words: &str| {
        if let Some(value) = node.get(key) {
            problems.error(value.at, RULE, format!("`{key}` must be {words}"));
        }
    };
    let word = |key: &str| node.get(key).and_then(Node::text);
    let mode = match word("type") {
        None => usual,
        Some(text) => DelegationMode::parse(text).unwrap_or_else(|| {
            wrong("type", "`supervisor`, `parallel` or `handoff`");
            usual
        }),
    };
    let on_failure = match word("on_failure") {
        None | Some("escalate") => OnFailure::Escalate,
        Some("retry") => OnFailure::Retry,
        Some("fallback") => match fallback {
            [_, ..] => OnFailure::Fallback { agents: fallback.to_vec() },
            [] => {
                wrong(
                    "on_failure",
                    "something else, or `spec.reliability.failover.fallback_agents` has to name an agent",
                );
                OnFailure::Report
            }
        },
        Some(_) => {
            wrong("on_failure", "`retry`, `fallback` or `escalate`");
            OnFailure::Report
        }
    };
    let timeout_ms = node.get("timeout_ms").and_then(Node::integer);
    if node.get("timeout_ms").is_some() && timeout_ms.is_none_or(|ms| ms < 1) {
        wrong("timeout_ms", "a whole number of milliseconds, at least 1");
    }
    let propagated = |key: &str| node.at_path(&["context_propagation", key]);
    let said = |key: &str| propagated(key).and_then(Node::flag);
    let propagation = Propagation {
        session_id: said("include_session_id"),
        history: said("include_history"),
        state: said("include_state"),
    };
    let custom_context = match propagated("custom_context").map(Node::to_json) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    Delegate { mode, propagation, custom_context, timeout_ms, on_failure, ..Delegate::named(agent) }
}

/// Returns the agents that replace one that failed, in their order.
fn fallback(spec: &Node, own: &str, names: Option<&Names<'_>>, problems: &mut Problems) -> Vec<String> {
    let failover = spec.at_path(&["reliability", "failover"]).filter(|node| is_on(node));
    let listed = failover.and_then(|node| node.get("fallback_agents")).map(Node::items).unwrap_or_default();
    listed.iter().filter_map(|node| checked(node, own, names, problems)).collect()
}

/// Returns true if a section is enabled; the default is off.
fn is_on(node: &Node) -> bool {
    node.get("enabled").and_then(Node::flag) == Some(true)
}
