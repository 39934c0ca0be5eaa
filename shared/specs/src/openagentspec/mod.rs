//! OpenAgentSpec documents.

mod capability;
mod shape;

use crate::Names;
use crate::problem::Problems;
use crate::shape::{Shape, check};
use crate::tree::Node;
use crate::{expression, name};
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::AgentFormat;

/// Reads a document; the definition is only of use when no error was found.
pub(crate) fn read(root: &Node, names: Option<&Names<'_>>, problems: &mut Problems) -> AgentDefinition {
    check(root, &Shape::Object(&shape::AGENT), "", "OAS-15", problems);
    if let Some(node) = root.get("name")
        && let Some(Err((rule, message))) = node.text().map(name::check)
    {
        problems.error(node.at, rule, message);
    }
    check_person(root, problems);
    let guardrails = root.get("guardrails");
    if let Some(guardrails) = guardrails {
        refuse_guardrails(guardrails, names, problems);
    }
    let capabilities = capability::read(root, names, problems);
    let own: Vec<&str> = capabilities.iter().map(|capability| capability.name.as_str()).collect();
    let exposes = exposes(root, &own, problems);
    let short_circuit = root.at_path(&["lifespan", "short_circuit"]).and_then(Node::integer);
    AgentDefinition {
        name: text(root, "name"),
        format: AgentFormat::OpenAgentSpec,
        description: text(root, "description"),
        instructions: text(root, "intent"),
        short_circuit: short_circuit.and_then(|limit| u32::try_from(limit).ok()),
        exposes,
        capabilities,
        ..AgentDefinition::default()
    }
}

fn text(root: &Node, key: &str) -> String {
    root.get(key).and_then(Node::text).unwrap_or_default().trim_end().to_owned()
}

/// The description is in the third person, the intent in the second (OAS-18, OAS-19): a matter of style, so a warning.
fn check_person(root: &Node, problems: &mut Problems) {
    let begins = |key: &str, words: &[&str]| {
        let node = root.get(key)?;
        let first = node.text()?.split_whitespace().next()?.to_lowercase();
        words.contains(&first.as_str()).then_some(node.at)
    };
    if let Some(at) = begins("description", &["you", "i", "i'm", "you're"]) {
        problems.warning(
            at,
            "OAS-18",
            "`description` should be in the third person, as in \"An agent that …\"",
        );
    }
    if let Some(at) = begins("intent", &["i", "i'm"]) {
        problems.warning(at, "OAS-19", "`intent` should be in the second person, as in \"You are …\"");
    }
}

fn exposes(root: &Node, own: &[&str], problems: &mut Problems) -> Vec<(String, String)> {
    let entries = root.get("exposes").map(Node::entries).unwrap_or_default();
    let mut exposes = Vec::with_capacity(entries.len());
    for entry in entries {
        if entry.key == "text" {
            problems.error(
                entry.at,
                "OAS-47",
                "`exposes.text` is taken by the answer itself; choose another key",
            );
        }
        let what = format!("exposes.{}", entry.key);
        if let Some(source) = expression::over_engagement(&entry.value, own, &what, "OAS-48", problems) {
            exposes.push((entry.key.clone(), source));
        }
    }
    exposes
}

/// Guardrails are checked, and then refused: running an agent without the guard that its author relies on would be
/// worse than not running it.
fn refuse_guardrails(guardrails: &Node, names: Option<&Names<'_>>, problems: &mut Problems) {
    for side in guardrails.entries().iter().filter(|entry| !entry.value.is_null()) {
        let what = format!("guardrails.{}", side.key);
        if let Some(tool) = side.value.get("tool_name") {
            if let Some(Err((_, message))) = tool.text().map(name::check) {
                problems.error(tool.at, "OAS-39", format!("`{what}.tool_name`: {message}"));
            } else if let (Some(name), Some(names)) = (tool.text(), names)
                && !names.may_have_tool(name)
            {
                let hint = crate::suggest::hint(name, names.tools.iter().copied());
                let message = format!("`{what}.tool_name`: there is no tool `{name}`{hint}");
                problems.error(tool.at, "OAS-39", message);
            }
        }
        if let Some(assertion) = side.value.get("assertion") {
            expression::is_cel(assertion, &format!("{what}.assertion"), "OAS-40", problems);
        }
        let message = format!(
            "`{what}`: this version of Turnstone cannot enforce guardrails yet and so refuses the document; remove the \
             guardrail, or restrict the capabilities instead"
        );
        problems.error(side.at, "OAS-37", message);
    }
}
