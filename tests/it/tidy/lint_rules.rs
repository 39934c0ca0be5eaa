//! `docs/LINT.md`: the checks of `turnstone agent lint`, one rule per line. The page has each rule that a reader
//! names.

use crate::house::{files, none, read, root};
use std::collections::BTreeSet;

/// The rules by id. Those of Agent Spec begin with `AS-`; those of OpenAgentSpec have the numbers of its checklist, `docs/OAS-ROWS.md`.
const RULES: &[(&str, &str)] = &[
    ("YAML", "the text is YAML, or JSON, and one document"),
    ("NUL", "no text and no name has the character U+0000, which cannot be stored"),
    (
        "AS-00",
        "a document of Agent Spec that is to be run is an agent, a team or a flow, and all of its components can run",
    ),
    ("AS-01", "`component_type` is the name of a component"),
    ("AS-02", "a component is one of the language, not of a plugin"),
    ("AS-03", "`component_type` is a component and not a family of components"),
    ("AS-04", "`id`, `name`, `description` and `metadata` are of the right type, and `name` is there"),
    ("AS-05", "a required field is there"),
    ("AS-06", "a field has a value of the right type"),
    ("AS-07", "a warning: the component has no such field, so the field has no effect"),
    ("AS-08", "`agentspec_version` is a published version"),
    ("AS-09", "a warning: `agentspec_version` is missing, or one that was never published"),
    ("AS-10", "`agentspec_version` has everything that the document uses"),
    ("AS-11", "`$component_ref` is the id of a component of the document or its registry"),
    ("AS-12", "no two components have the same id"),
    ("AS-13", "an id is in `$referenced_components` of one level"),
    ("AS-14", "references form no circle"),
    ("AS-15", "a component is of the kind that its place asks for"),
    ("AS-16", "a disaggregated document holds `$referenced_components` alone"),
    ("AS-17", "the document does not have too many components, levels or repeated values"),
    ("AS-18", "a warning: a secret in the document itself"),
    ("AS-19", "a registry gives every secret that a document refers to, when it is to be run"),
    ("AS-20", "a property has a `title`, which templates and edges can hold"),
    ("AS-21", "a property has a type of the type system"),
    ("AS-22", "a `default` is of the type of its property"),
    ("AS-23", "declared inputs and outputs have the names that the fields of the component ask for"),
    ("AS-24", "declared inputs and outputs have types that are compatible with those inside"),
    ("AS-25", "no two inputs, and no two outputs, have the same title"),
    ("AS-30", "a flow has one StartNode, its `start_node`; a warning: a node that is listed twice"),
    ("AS-31", "a flow has an EndNode"),
    (
        "AS-32",
        "control edges connect nodes of the flow, one from each branch of a node; none enters the start or leaves an end",
    ),
    ("AS-33", "an edge leads to every node; a warning from `lint`"),
    ("AS-34", "data edges connect an output and an input of nodes of the flow"),
    ("AS-35", "an output can be cast to the type of the input that it fills"),
    ("AS-36", "every input without a default is filled on every path to its node; a warning from `lint`"),
    ("AS-37", "an output of a flow comes from every EndNode, with one type, or has a default"),
    ("AS-39", "`branches` are those of the node"),
    ("AS-40", "a BranchingNode has one input"),
    ("AS-41", "a reducer is one for the type of an output of the subflow"),
    ("AS-42", "a CatchExceptionNode has a default for each output, and a subflow without its names"),
    ("AS-43", "the subflows of a ParallelFlowNode have inputs of one type and outputs of different names"),
    ("AS-44", "an InputMessageNode has one output, a string"),
    ("AS-50", "a Swarm has relationships; a warning: one that is there twice, or a deprecated `handoff`"),
    ("AS-51", "a ManagerWorkers has workers, and its manager is none of them"),
    ("AS-52", "an input of an agent and of its specialization has one type"),
    ("AS-53", "the tools of an agent have different names, and none that the runtime adds"),
    ("AS-54", "a header is not in `headers` and `sensitive_headers`"),
    ("AS-55", "an MCPToolSpec has one output, a string"),
    ("AS-56", "a retry policy has known fields, and delays that grow"),
    ("AS-57", "a transform has one threshold, and a collection for its cache"),
    ("AS-58", "the collections of a datastore hold objects"),
    ("AS-59", "a ServerTool is a tool of this server, when the document is to be run there"),
    (
        "AS-60",
        "`[tool_policy]` allows the private addresses of a document that is to be run, and its programs with their arguments, variables and folders",
    ),
    ("AS-61", "an input chooses the host of a request only within a `url_allow_list`"),
    ("OAS-03", "a name has at most 253 characters"),
    ("OAS-04", "a name has a-z, 0-9, `-` and `.` only"),
    ("OAS-05", "a name begins with a letter or digit"),
    ("OAS-06", "a name ends with a letter or digit"),
    ("OAS-07", "each part of a name between dots begins and ends with a letter or digit"),
    ("OAS-09", "a tool of a manifest does not have the name of an agent"),
    ("OAS-10", "`oagent://name` is an agent of this server"),
    ("OAS-11", "`oagent://host/path/name` is well formed, and its host is among those of `[remote]`"),
    ("OAS-15", "a key is known, and its value of the right type"),
    ("OAS-16", "`kind` is `openagentspec:v1/agent`"),
    ("OAS-17", "`name` is there"),
    ("OAS-18", "`description` is there; a warning unless it is in the third person"),
    ("OAS-19", "`intent` is there; a warning unless it is in the second person"),
    ("OAS-20", "`owner` is there"),
    ("OAS-21", "a capability is a tool or an agent of this server"),
    ("OAS-24_dropped", "a warning: outputs that `collect_results: false` leaves out"),
    ("OAS-27", "a `static_identity` is for a tool that takes credentials"),
    ("OAS-28", "a warning: an input restriction that restricts nothing"),
    ("OAS-29", "a warning: an output restriction that restricts nothing"),
    ("OAS-30", "`require_review` names an existing reviewer"),
    ("OAS-33", "an assertion is CEL over the Engagement object"),
    ("OAS-33_member", "a warning: a member that the Engagement object does not have, as in `.input.`"),
    ("OAS-33_name", "a warning: `recent` or `history` of a name that is no capability"),
    ("OAS-33_never", "a warning: an assertion that is never true"),
    ("OAS-33_own", "a warning: outputs of a call in its own input restriction"),
    ("OAS-33_pattern", "a warning: a pattern of `matches` that is no regular expression"),
    ("OAS-33_type", "a warning: an assertion that is no boolean"),
    ("OAS-38", "a guardrail has a tool and an assertion"),
    ("OAS-39", "a guardrail's tool is a tool"),
    ("OAS-40", "a guardrail's assertion is CEL"),
    ("OAS-45", "a warning: the Engagement object in a guardrail's assertion"),
    ("OAS-47", "`exposes` does not take the key `text`"),
    ("OAS-48", "an exposed value is CEL over the Engagement object"),
    ("OAS-52", "`short_circuit` is a whole number of at least 1"),
    ("OAS-A17", "a warning: a missing reference that the caller deferred"),
    ("OAS-A18", "a warning: agents that ask one another in a circle"),
    ("OAS-A19", "no key is there twice, and the document is not too large, too deep, or full of aliases"),
    ("OSSA-apiVersion", "`apiVersion` is one of OSSA 0.2"),
    ("OSSA-autonomy", "`spec.autonomy`"),
    ("OSSA-collaboration", "`spec.collaboration`"),
    ("OSSA-constraints", "`spec.constraints`"),
    ("OSSA-conversation_memory", "`spec.conversation_memory`"),
    ("OSSA-deployment", "`spec.deployment`"),
    ("OSSA-errors", "`spec.error_handlers` and how tools fail"),
    ("OSSA-extensions", "`extensions.agent_protocol.operations`"),
    ("OSSA-identity", "`spec.identity`"),
    ("OSSA-kind", "`kind` is `Agent`"),
    ("OSSA-knowledge_graph", "`spec.knowledge_graph`"),
    ("OSSA-llm", "`spec.llm`"),
    ("OSSA-manifest", "the manifest as a whole"),
    ("OSSA-metadata", "`metadata`"),
    ("OSSA-observability", "`spec.observability`"),
    ("OSSA-prompts", "`spec.prompts`"),
    ("OSSA-reasoning", "`spec.reasoning`"),
    ("OSSA-reliability", "`spec.reliability`"),
    ("OSSA-role", "`spec.role` is there"),
    ("OSSA-safety", "`spec.safety`"),
    ("OSSA-security", "`spec.security`"),
    ("OSSA-spec", "`spec` is there"),
    ("OSSA-state", "`spec.state`"),
    ("OSSA-taxonomy", "`spec.taxonomy`"),
    ("OSSA-tools", "`spec.tools`"),
    ("OSSA-turn_chain", "`spec.turn_chain`"),
];

const HEAD: &str = "# What `turnstone agent lint` checks

Use this page to look up the rule that a problem of `turnstone agent lint FILE…` names.

The page is generated: change `tests/it/tidy/lint_rules.rs` and run
`TURNSTONE_BLESS=1 cargo test --workspace --test tidy lint`.

Every problem has line, column and one of these rules. The server returns the same problems when it refuses a document:
`422`, with all of them in `error.details.problems`, and nothing stored. An error refuses the document, a warning does
not. Only a server knows its tools, agents and hosts, so `lint` leaves references to `turnstone agent apply`.
`lint --reach` connects from this machine, with this configuration. It checks whether tools, MCP servers, providers and
remote agents answer, and calls none of them. It also checks documents of Agent Spec for `AS-60`.

| rule | what it asks for |
|---|---|
";

#[test]
fn the_page_of_lint_is_generated_from_its_rules() {
    let rows = RULES.iter().map(|(rule, what)| format!("| `{rule}` | {what} |\n"));
    let page: String = std::iter::once(HEAD.to_owned()).chain(rows).collect();
    if std::env::var_os("TURNSTONE_BLESS").is_some() {
        std::fs::write(root().join("docs/LINT.md"), &page).unwrap();
    }
    assert_eq!(read("docs/LINT.md"), page, "run `TURNSTONE_BLESS=1 cargo test --workspace --test tidy lint`");
}

/// Returns the rules in the texts of a reader.
fn named(text: &str) -> BTreeSet<String> {
    let literals = text.split('"').skip(1).step_by(2);
    let is_rule = |word: &&str| {
        let rest = ["AS-", "OAS-", "OSSA-"].iter().find_map(|prefix| word.strip_prefix(prefix));
        matches!(*word, "YAML" | "NUL")
            || rest.is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
    };
    literals.filter(is_rule).map(str::to_owned).collect()
}

#[test]
fn every_rule_of_a_reader_is_explained() {
    let sources = files("shared/specs/src", ".rs").into_iter();
    let sources = sources.filter(|path| !path.ends_with("tests.rs"));
    let used: BTreeSet<String> = sources.flat_map(|path| named(&read(&path))).collect();
    assert!(used.contains("OAS-16"), "no rule was found: {used:?}");
    let problems: Vec<String> = used
        .iter()
        .filter(|rule| !RULES.iter().any(|(known, _)| known == rule))
        .map(|rule| format!("{rule} has no line in tests/it/tidy/lint_rules.rs"))
        .collect();
    none("A rule is not explained:", &problems);
}
