//! OpenAgentSpec documents.

mod capability;
mod shape;

use crate::Names;
use crate::expression::Capabilities;
use crate::problem::Problems;
use crate::shape::{Shape, check};
use crate::tree::Node;
use crate::{expression, name};
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::{AgentFormat, Guardrail, Guardrails};
use turnstone_domain::policy::lint::ExpressionPlace;

/// Reads a document; the definition is valid only when no error was found.
pub(crate) fn read(root: &Node, names: Option<&Names<'_>>, problems: &mut Problems) -> AgentDefinition {
    check(root, &Shape::Object(&shape::AGENT), "", "OAS-15", problems);
    if let Some(node) = root.get("name")
        && let Some(Err((rule, message))) = node.text().map(name::check)
    {
        problems.error(node.at, rule, message);
    }
    check_person(root, problems);
    let guardrails = guardrails(root, names, problems);
    let capabilities = capability::read(root, names, problems);
    let exposes = exposes(root, &capability::declared(root), problems);
    let short_circuit = root.at_path(&["lifespan", "short_circuit"]).and_then(Node::integer);
    let retains = root.at_path(&["lifespan", "retain_memory"]).and_then(Node::flag);
    AgentDefinition {
        name: text(root, "name"),
        format: AgentFormat::OpenAgentSpec,
        description: text(root, "description"),
        instructions: text(root, "intent"),
        owner: text(root, "owner"),
        short_circuit: short_circuit.and_then(|limit| u32::try_from(limit).ok()),
        // The default is no memory: a prompt grows by earlier engagements only on demand (OAS-51).
        retain_memory: retains == Some(true),
        exposes,
        guardrails,
        capabilities,
        ..AgentDefinition::default()
    }
}

fn text(root: &Node, key: &str) -> String {
    root.get(key).and_then(Node::text).unwrap_or_default().trim_end().to_owned()
}

/// Checks that the description is in the third person and the intent in the second (OAS-18, OAS-19). This is
/// a matter of style, so it is a warning.
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

fn exposes(root: &Node, own: &Capabilities, problems: &mut Problems) -> Vec<(String, String)> {
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
        if let Some(source) = expression::over_engagement(
            &entry.value,
            (own, ExpressionPlace::Exposed),
            &what,
            "OAS-48",
            problems,
        ) {
            exposes.push((entry.key.clone(), source));
        }
    }
    exposes
}

/// Reads the guardrails: each names a tool and an assertion over its output (OAS-37 … OAS-40).
fn guardrails(root: &Node, names: Option<&Names<'_>>, problems: &mut Problems) -> Guardrails {
    let mut side = |key: &str| -> Option<Guardrail> {
        let node = root.at_path(&["guardrails", key]).filter(|node| !node.is_null())?;
        let what = format!("guardrails.{key}");
        let tool = node.get("tool_name")?;
        let name = tool.text()?;
        if let Err((rule, message)) = name::check(name) {
            problems.error(tool.at, rule, format!("`{what}.tool_name`: {message}"));
        } else if let Some(names) = names.filter(|names| !names.may_have_tool(name)) {
            let hint = match names.agents.contains(&name) {
                true => "; an agent of that name cannot be a guardrail".to_owned(),
                false => crate::suggest::hint(name, names.tools.iter().copied()),
            };
            problems.error(tool.at, "OAS-39", format!("`{what}.tool_name`: there is no tool `{name}`{hint}"));
        }
        let assertion = node.get("assertion")?;
        let assertion = expression::over_output(assertion, &format!("{what}.assertion"), "OAS-40", problems)?;
        Some(Guardrail { tool_name: name.to_owned(), assertion })
    };
    Guardrails { input: side("input"), output: side("output"), ..Guardrails::default() }
}
