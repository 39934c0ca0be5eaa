//! `spec.prompts`: the parts of a prompt beside the conversation (RS-16, RS-17).

use crate::problem::Problems;
use crate::tree::Node;
use turnstone_domain::agent::{Example, Prompts};

/// The most examples that the schema allows.
const MOST_EXAMPLES: usize = 20;

/// Reads the section.
pub(super) fn read(section: &Node, problems: &mut Problems) -> Prompts {
    let examples = section.get("few_shot_examples").map(Node::items).unwrap_or_default();
    if let Some(one_too_many) = examples.get(MOST_EXAMPLES) {
        let message = format!(
            "`spec.prompts.few_shot_examples` has {} examples; at most {MOST_EXAMPLES} are allowed",
            examples.len()
        );
        problems.error(one_too_many.at, "OSSA-prompts", message);
    }
    Prompts {
        system: section.get("system").and_then(|system| template(system, problems)),
        examples: examples.iter().filter_map(example).collect(),
    }
}

fn example(node: &Node) -> Option<Example> {
    let text = |key: &str| node.get(key).and_then(Node::text).map(str::to_owned);
    Some(Example { input: text("input")?, output: text("output")?, context: text("context") })
}

/// Returns the template with its variables filled in: `{{name}}` is replaced by the variable `name`.
fn template(system: &Node, problems: &mut Problems) -> Option<String> {
    let node = system.get("template")?;
    let text = node.text()?.trim_end();
    if is_path(text) {
        let message = "`spec.prompts.system.template` reads like the name of a file; the server uses it as the text itself. \
                       `turnstone agent apply` puts in the content of a file that stands beside the manifest";
        problems.warning(node.at, "OSSA-prompts", message);
    }
    let variables = system.get("variables").map(Node::entries).unwrap_or_default();
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((name, after)) = inside.split_once("}}") else {
            filled.push_str("{{");
            rest = inside;
            continue;
        };
        match variables.iter().find(|entry| entry.key == name.trim()).and_then(|entry| entry.value.text()) {
            Some(value) => filled.push_str(value),
            None => {
                let message = format!(
                    "`spec.prompts.system.template` names the variable `{}`, which `variables` does not have",
                    crate::shape::shortened(name.trim())
                );
                problems.error(node.at, "OSSA-prompts", message);
            }
        }
        rest = after;
    }
    filled.push_str(rest);
    (!filled.is_empty()).then_some(filled)
}

/// Returns true for one word with the ending of a file name.
fn is_path(text: &str) -> bool {
    let ending = text.rsplit_once('.').map(|(_, ending)| ending);
    !text.contains(char::is_whitespace)
        && matches!(ending, Some("md" | "txt" | "j2" | "jinja" | "prompt" | "tmpl"))
}
