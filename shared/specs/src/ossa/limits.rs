//! Turn and token limits, timeouts, and the window of the conversation (OSSA runtime semantics §4, §6).

use crate::problem::Problems;
use crate::tree::Node;
use turnstone_domain::agent::{Forgetting, Limits, Memory, Reasoning};

const MAX_TURNS: u32 = 50;
const MAX_TOOL_TURNS: u32 = 10;
const MAX_STEPS: u32 = 10;
const WINDOW_SIZE: u32 = 20;
const MAX_HISTORY_TOKENS: i64 = 4000;

/// Reads `constraints`, from the paths of the schema and those of the runtime semantics. If a limit is set
/// twice, the narrower one counts.
pub(super) fn limits(root: &Node, problems: &mut Problems) -> Limits {
    let integers = |paths: &[&[&str]]| paths.iter().filter_map(|path| spec(root, path)?.integer()).min();
    let turns = integers(&[&["constraints", "max_turns"], &["autonomy", "max_turns"]]);
    let tokens = integers(&[&["constraints", "max_tokens"], &["constraints", "cost", "maxTokensPerRequest"]]);
    let mut timeout: Option<f64> = None;
    for path in [&["constraints", "timeout_seconds"][..], &["constraints", "performance", "timeoutSeconds"]] {
        let Some((node, seconds)) = spec(root, path).and_then(|node| Some((node, node.number()?))) else {
            continue;
        };
        if seconds <= 0.0 {
            let message = format!(
                "`spec.{}` must be more than 0: no model call could ever end in time",
                path.join(".")
            );
            problems.error(node.at, "OSSA-constraints", message);
        }
        timeout = Some(timeout.map_or(seconds, |other| other.min(seconds)));
    }
    let execution = spec(root, &["safety", "guardrails"]).filter(|node| is_on(node));
    let execution = execution.and_then(|node| node.get("max_execution_time_seconds")?.number());
    Limits {
        max_turns: short(turns).unwrap_or(MAX_TURNS),
        max_tool_turns: Some(tool_turns(root)),
        token_budget: tokens,
        max_tokens_per_turn: integers(&[&["constraints", "max_tokens_per_turn"]]),
        model_timeout_ms: timeout.map(milliseconds),
        attempt_timeout_ms: execution.map(milliseconds),
        max_delegation_depth: super::collaboration::max_depth(root),
    }
}

/// Returns the most consecutive turns with tools: `turn_chain.max_tool_turns`, and one less than `reasoning.max_steps`,
/// whose last step is the answer. The lower number counts.
fn tool_turns(root: &Node) -> u32 {
    let turns = short(spec(root, &["turn_chain", "max_tool_turns"]).and_then(Node::integer));
    let steps = reasoning(root).map(|reasoning| reasoning.max_steps.saturating_sub(1));
    turns.unwrap_or(MAX_TOOL_TURNS).min(steps.unwrap_or(u32::MAX))
}

/// Reads `reasoning`; a present section has the schema's default.
pub(super) fn reasoning(root: &Node) -> Option<Reasoning> {
    let section = spec(root, &["reasoning"]).filter(|node| !node.entries().is_empty())?;
    let max_steps = short(section.get("max_steps").and_then(Node::integer)).unwrap_or(MAX_STEPS);
    Some(Reasoning { max_steps })
}

/// Returns true unless a section says `enabled: false`.
fn is_on(section: &Node) -> bool {
    section.get("enabled").and_then(Node::flag) != Some(false)
}

/// Reads `conversation_memory`, which `state.context_window` overrides.
pub(super) fn memory(root: &Node) -> Memory {
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| spec(root, path)?.integer());
    let window =
        first(&[&["state", "context_window", "max_messages"], &["conversation_memory", "window_size"]]);
    let tokens =
        first(&[&["state", "context_window", "max_tokens"], &["conversation_memory", "max_history_tokens"]]);
    Memory {
        window_size: short(window).unwrap_or(WINDOW_SIZE),
        max_history_tokens: Some(tokens.unwrap_or(MAX_HISTORY_TOKENS)),
        strategy: forgetting(root),
    }
}

fn forgetting(root: &Node) -> Forgetting {
    let words = [&["state", "context_window", "strategy"][..], &["conversation_memory", "summarization"]];
    match words.iter().find_map(|path| spec(root, path)?.text()) {
        Some("summarize" | "summarization") => Forgetting::Summarize,
        Some("truncate") => Forgetting::Truncate,
        Some("importance_weighted") => Forgetting::ImportanceWeighted,
        _ => Forgetting::Sliding,
    }
}

/// Returns seconds as milliseconds, at least one.
pub(super) fn milliseconds(seconds: f64) -> u64 {
    // `as` saturates, and the shape allows no negative number.
    ((seconds * 1000.0) as u64).max(1)
}

fn spec<'a>(root: &'a Node, path: &[&str]) -> Option<&'a Node> {
    root.get("spec")?.at_path(path)
}

fn short(number: Option<i64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}
