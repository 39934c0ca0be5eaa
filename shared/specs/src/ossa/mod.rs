//! OSSA 0.2.9 manifests.
//!
//! The shape is the published schema with the fields of its runtime semantics that the schema omits, such as
//! `constraints.max_turns`. A field that this version does not run is accepted silently if ignoring it is
//! harmless. It is accepted with a warning if its author may rely on it, and refused if the agent would
//! behave differently.

mod approvals;
mod collaboration;
mod errors;
mod form;
mod identity;
mod limits;
mod operations;
mod prompts;
mod reach;
mod safety;
mod session;
mod shape;
mod spending;
mod template_file;
mod tools;
mod unenforced;

pub use template_file::with_template;

use crate::Names;
use crate::problem::Problems;
use crate::shape::{Shape, check};
use crate::tree::Node;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::{AgentFormat, ModelChoice, ModelRef};

/// Reads a manifest; the definition is valid only when no error was found.
pub(crate) fn read(root: &Node, names: Option<&Names<'_>>, problems: &mut Problems) -> AgentDefinition {
    check(root, &Shape::Object(&shape::MANIFEST), "", "OSSA-manifest", problems);
    unenforced::report(root, problems);
    let text =
        |path: &[&str]| root.at_path(path).and_then(Node::text).unwrap_or_default().trim_end().to_owned();
    let limits = limits::limits(root, problems);
    let mut tools = tools::read(root, names, limits.model_timeout_ms, problems);
    let mut policy = errors::policy(root);
    let approvals = approvals::read(root, &mut tools, &mut policy, problems);
    collaboration::read(root, names, &mut tools.capabilities, problems);
    AgentDefinition {
        name: text(&["metadata", "name"]),
        format: AgentFormat::Ossa,
        description: text(&["metadata", "description"]),
        instructions: text(&["spec", "role"]),
        model: root.at_path(&["spec", "llm"]).map(model).unwrap_or_default(),
        chain: errors::chain(root, limits.token_budget),
        errors: policy,
        approvals,
        actions: approvals::actions(root, problems),
        limits,
        capabilities: tools.capabilities,
        toolsets: tools.toolsets,
        memory: limits::memory(root),
        identity: root.at_path(&["spec", "identity"]).map(identity::read).unwrap_or_default(),
        prompts: root
            .at_path(&["spec", "prompts"])
            .map(|node| prompts::read(node, problems))
            .unwrap_or_default(),
        safety: root.get("spec").map(|spec| safety::read(spec, problems)).unwrap_or_default(),
        state: root.at_path(&["spec", "state"]).map(|node| session::read(node, problems)).unwrap_or_default(),
        reasoning: limits::reasoning(root),
        operations: operations::read(root, problems),
        spending: spending::spending(root, problems),
        version: root.at_path(&["metadata", "version"]).and_then(Node::text).map(str::to_owned),
        ..AgentDefinition::default()
    }
}

fn model(llm: &Node) -> ModelChoice {
    let one = |node: &Node| {
        let provider = node.get("provider").and_then(Node::text).map(str::to_owned);
        Some(ModelRef { provider, model: node.get("model").and_then(Node::text)?.to_owned() })
    };
    let fallbacks = llm.get("fallback_models").map(Node::items).unwrap_or_default();
    let first = |paths: &[&[&str]]| paths.iter().find_map(|path| llm.at_path(path)).cloned();
    let number = |paths: &[&[&str]]| first(paths).and_then(|node| node.number());
    ModelChoice {
        provider: None,
        models: std::iter::once(llm).chain(fallbacks).filter_map(one).collect(),
        temperature: number(&[&["temperature"], &["parameters", "temperature"]]),
        top_p: number(&[&["topP"], &["parameters", "topP"], &["parameters", "top_p"]]),
        frequency_penalty: number(&[
            &["frequencyPenalty"],
            &["parameters", "frequencyPenalty"],
            &["parameters", "frequency_penalty"],
        ]),
        presence_penalty: number(&[
            &["presencePenalty"],
            &["parameters", "presencePenalty"],
            &["parameters", "presence_penalty"],
        ]),
        unbounded: false,
        max_tokens: first(&[
            &["maxTokens"],
            &["max_tokens"],
            &["parameters", "maxTokens"],
            &["parameters", "max_tokens"],
        ])
        .and_then(|node| node.integer()),
    }
}
