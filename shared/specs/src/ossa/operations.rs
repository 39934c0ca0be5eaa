//! `extensions.agent_protocol.operations`: the agent's operations beside chat. The manifest has no section
//! for them; `extensions` is open.

use crate::problem::Problems;
use crate::tree::Node;
use std::collections::BTreeSet;
use turnstone_domain::agent::Operation;
use turnstone_domain::schema::Schema;

const RULE: &str = "OSSA-extensions";
/// The names of every agent's own requests.
const TAKEN: [&str; 12] = [
    "chat",
    "chat_request",
    "ChatRequest",
    "configure",
    "configure_request",
    "ConfigureRequest",
    "cancel",
    "cancel_request",
    "CancelRequest",
    "resume",
    "resume_with_input",
    "ResumeWithInput",
];

/// Reads the operations.
pub(super) fn read(root: &Node, problems: &mut Problems) -> Vec<Operation> {
    let Some(list) = root.at_path(&["extensions", "agent_protocol", "operations"]) else { return Vec::new() };
    let mut names = BTreeSet::new();
    let mut operations = Vec::new();
    for node in list.items() {
        let Some(name) = node.get("name").and_then(Node::text).filter(|name| !name.is_empty()) else {
            problems.error(node.at, RULE, "an operation needs a `name`");
            continue;
        };
        let shown = crate::shape::shortened(name);
        if TAKEN.contains(&name) || !names.insert(name.to_owned()) {
            problems.error(
                node.at,
                RULE,
                format!("the name `{shown}` is taken; give the operation another one"),
            );
            continue;
        }
        let mut schema = |field: &str| {
            let schema = node.get(field).filter(|schema| !schema.is_null())?;
            let at = schema.at;
            let schema = schema.to_json();
            if let Err(why) = Schema::compile(&schema) {
                problems.error(at, RULE, format!("`{field}` of `{shown}`: {why}"));
            }
            Some(schema)
        };
        let (input_schema, output_schema) = (schema("input_schema"), schema("output_schema"));
        let description = node.get("description").and_then(Node::text).unwrap_or_default().to_owned();
        operations.push(Operation { name: name.to_owned(), description, input_schema, output_schema });
    }
    operations
}
