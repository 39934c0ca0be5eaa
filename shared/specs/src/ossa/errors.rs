//! The error policy of a manifest (OSSA runtime semantics §2): handlers, retries, circuit breakers, contacts,
//! and the rules for a sequence of turns.
//!
//! The runtime semantics define handlers without a place in a manifest; `spec.error_handlers` and
//! `spec.reliability.error_handlers` are read. `max_attempts` counts the first try, `max_retries` does not.

use super::limits::milliseconds;
use crate::problem::Problems;
use crate::tree::{Entry, Node};
use turnstone_domain::agent::errors::{
    Breaker, CapabilityErrors, Contact, ErrorHandler, ErrorPolicy, Pause, RetryRule, TurnChain,
};
use turnstone_domain::error::{ErrorClass, FailureKind, Strategy};

/// The errors of a call to which a capability's `error_handling` applies.
const OF_CALLS: [ErrorClass; 4] =
    [ErrorClass::ToolError, ErrorClass::ToolTimeout, ErrorClass::RateLimited, ErrorClass::CircuitOpen];

/// Reads the policy of the whole agent.
pub(super) fn policy(root: &Node) -> ErrorPolicy {
    let at = |path: &[&str]| root.get("spec").and_then(|spec| spec.at_path(path));
    let listed = [at(&["error_handlers"]), at(&["reliability", "error_handlers"])];
    let handlers = listed.into_iter().flatten().flat_map(Node::items).filter_map(handler).collect();
    ErrorPolicy {
        handlers,
        retry: at(&["reliability", "retry"]).map(retry),
        model_retry: at(&["llm", "retry_config"]).map(retry),
        breaker: at(&["reliability", "circuit_breaker"])
            .map_or_else(Breaker::default, |node| breaker(node, Breaker::default())),
        escalation: contact(at(&["autonomy", "escalation_policy"]), at(&["safety", "human_in_loop"])),
    }
}

/// Reads the policy of one capability: its own rules override those of its tool.
pub(super) fn of_capability(tool: &Node, own: &Node) -> CapabilityErrors {
    let said = |key: &str| own.get(key).or_else(|| tool.get(key));
    // In the schema, a breaker section without `enabled` is off.
    let off = Breaker { enabled: false, ..Breaker::default() };
    CapabilityErrors {
        retry: said("retry_policy").map(retry),
        handler: said("error_handling").and_then(handling),
        breaker: said("circuit_breaker").map(|node| breaker(node, off)),
        idempotent: own.at_path(&["idempotency", "enabled"]).and_then(Node::flag).unwrap_or(false),
        mapping: said("error_handling").map(mapping).unwrap_or_default(),
    }
}

/// Returns the document's rule for running calls of a tool in parallel, if it has one.
pub(super) fn parallel(tool: &Node) -> Option<bool> {
    let flag = |path: &[&str]| tool.at_path(path).and_then(Node::flag);
    flag(&["parallel"]).or_else(|| flag(&["config", "parallel"]))
}

/// Reads `turn_chain`, and the tokens that the document itself allows.
pub(super) fn chain(root: &Node, max_tokens: Option<i64>) -> TurnChain {
    let flag = |key: &str| root.at_path(&["spec", "turn_chain", key]).and_then(Node::flag);
    TurnChain {
        continue_on_tool_use: flag("continue_on_tool_use").unwrap_or(true),
        confirm_between_turns: flag("confirm_between_turns").unwrap_or(false),
        max_tokens,
    }
}

fn handler(node: &Node) -> Option<ErrorHandler> {
    let text = |key: &str| node.get(key).and_then(Node::text);
    let codes = node.get("error_codes").map(Node::items).unwrap_or_default();
    Some(ErrorHandler {
        codes: codes.iter().filter_map(|code| ErrorClass::parse(code.text()?)).collect(),
        max_retries: count(node, "max_retries"),
        fallback_value: node.get("fallback_value").map(Node::to_json),
        fallback_capability: text("fallback_capability").or_else(|| text("fallback_tool")).map(str::to_owned),
        escalation_target: text("escalation_target").map(str::to_owned),
        ..ErrorHandler::of(Strategy::parse(text("strategy")?)?)
    })
}

/// Reads `error_handling` of a capability. `fail` is the default: the call fails, and the model receives the
/// failure.
fn handling(node: &Node) -> Option<ErrorHandler> {
    let fallback = node.get("fallback_capability").and_then(Node::text).map(str::to_owned);
    let strategy = match node.get("on_error").and_then(Node::text) {
        Some("ignore") => Strategy::Skip,
        Some("retry") => Strategy::Retry,
        Some("fallback") => Strategy::Fallback,
        None if fallback.is_some() => Strategy::Fallback,
        _ => return None,
    };
    let fallback = fallback.filter(|_| strategy == Strategy::Fallback);
    Some(ErrorHandler {
        codes: OF_CALLS.to_vec(),
        fallback_capability: fallback,
        ..ErrorHandler::of(strategy)
    })
}

/// Reads `error_mapping`, in document order. [`unknown_codes`] reports codes that OSSA does not define.
fn mapping(node: &Node) -> Vec<(String, ErrorClass)> {
    let entries = node.get("error_mapping").map(Node::entries).unwrap_or_default();
    let code = |entry: &Entry| Some((entry.key.clone(), ErrorClass::parse(entry.value.text()?)?));
    entries.iter().filter_map(code).collect()
}

/// Reports codes of `error_mapping` that OSSA does not define.
pub(super) fn unknown_codes(tool: &Node, problems: &mut Problems) {
    let own = tool.get("capabilities").map(Node::items).unwrap_or_default();
    for node in own.iter().chain([tool]).filter_map(|node| node.at_path(&["error_handling", "error_mapping"]))
    {
        for entry in node.entries() {
            let code = entry.value.text().unwrap_or_default();
            let may_be = |code: &ErrorClass| FailureKind::of_mapped(*code).is_some();
            if !ErrorClass::parse(code).is_some_and(|code| may_be(&code)) {
                let known: Vec<&str> =
                    ErrorClass::ALL.iter().filter(|code| may_be(code)).map(|code| code.as_str()).collect();
                let known = known.join(", ");
                let message =
                    format!("`{code}` is no code that an error of a tool can have; these are: {known}");
                problems.error(entry.at, "OSSA-errors", message);
            }
        }
    }
}

fn retry(node: &Node) -> RetryRule {
    let rule = RetryRule::default();
    let text = |key: &str| node.get(key).and_then(Node::text);
    let ms = |key: &str| node.get(key).and_then(Node::integer).and_then(|ms| u64::try_from(ms).ok());
    let attempts = count(node, "max_attempts").map(|attempts| attempts.saturating_sub(1));
    let only = node.get("retryable_errors").map(Node::items).unwrap_or_default();
    RetryRule {
        retries: count(node, "max_retries").or(attempts),
        pause: text("backoff_strategy")
            .or_else(|| text("backoff"))
            .and_then(Pause::parse)
            .unwrap_or(rule.pause),
        initial_delay_ms: ms("initial_delay_ms").unwrap_or(rule.initial_delay_ms),
        max_delay_ms: ms("max_delay_ms").unwrap_or(rule.max_delay_ms),
        only: only.iter().filter_map(Node::text).map(str::to_owned).collect(),
    }
}

fn breaker(node: &Node, default: Breaker) -> Breaker {
    let seconds = node.get("timeout_seconds").and_then(Node::number).filter(|seconds| *seconds > 0.0);
    Breaker {
        enabled: node.get("enabled").and_then(Node::flag).unwrap_or(default.enabled),
        failure_threshold: count(node, "failure_threshold").unwrap_or(default.failure_threshold),
        timeout_ms: seconds.map_or(default.timeout_ms, milliseconds),
        half_open_requests: count(node, "half_open_requests")
            .or_else(|| count(node, "success_threshold"))
            .unwrap_or(default.half_open_requests),
        ..default
    }
}

/// Returns the contact: `autonomy.escalation_policy` with a name in it, or any operator when
/// `safety.human_in_loop` is enabled.
fn contact(escalation: Option<&Node>, human: Option<&Node>) -> Option<Contact> {
    let seconds = |node: &Node| node.get("timeout_seconds").and_then(Node::number);
    let timeout = |node: &Node| seconds(node).filter(|seconds| *seconds > 0.0).map(milliseconds);
    if let Some(node) = escalation.filter(|node| !node.entries().is_empty()) {
        let named = ["target", "escalation_target", "contact"].iter().find_map(|key| node.get(key)?.text());
        let word = node.get("type").and_then(Node::text);
        let contact = Contact {
            target: named.unwrap_or_default().to_owned(),
            supervisor: word == Some("supervisor"),
            timeout_ms: timeout(node),
        };
        // An alert asks no one.
        return (word != Some("alert")).then_some(contact);
    }
    let human = human.filter(|node| node.get("enabled").and_then(Node::flag) == Some(true))?;
    Some(Contact { timeout_ms: timeout(human), ..Contact::default() })
}

fn count(node: &Node, key: &str) -> Option<u32> {
    node.get(key).and_then(Node::integer).and_then(|number| u32::try_from(number).ok())
}
