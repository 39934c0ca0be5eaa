//! Versions, references, disaggregated documents and registries.

use super::{AGENT, FLOW, errors, problem_names, read_with, rules, warnings, with};
use crate::agent_spec::model::{AgenticComponent, Component};
use crate::agent_spec::{self, Registry, Version, is_agent_spec, is_disaggregated, lint};
use crate::{Format, Severity, detect};
use serde_json::json;

/// AGS-01: YAML and JSON are read alike.
#[test]
fn yaml_and_json_read_the_same() {
    assert_eq!(rules(AGENT), [""; 0]);
    assert_eq!(rules(FLOW), [""; 0]);
    let json = json!({
        "component_type": "Agent", "id": "a", "name": "desk", "system_prompt": "You help {{who}}.",
        "llm_config": {"component_type": "VllmConfig", "id": "l", "name": "m", "model_id": "m", "url": "http://m.example"},
        "agentspec_version": "25.4.1",
    });
    assert_eq!(rules(&json.to_string()), [""; 0]);
    assert_eq!(errors(&with(&json.to_string(), "\"Agent\"", "\"Agnet\"")), ["AS-01@1:19"]);
}

/// AS-00, AS-59: agents can be run, a tool alone cannot, and a tool of the server is there.
#[test]
fn a_document_is_recognised_and_refused_where_it_cannot_be_run() {
    assert_eq!(detect(AGENT), Ok(Format::AgentSpec));
    assert_eq!(crate::read(AGENT, None).unwrap().0.name, "desk");
    let tool = "component_type: ServerTool\nid: t\nname: add\nagentspec_version: 25.4.1\n";
    let problems = crate::read(tool, None).unwrap_err();
    assert_eq!((problems[0].rule, problems[0].line, problems.len()), ("AS-00", 1, 1));
    assert!(problems[0].message.contains("cannot be run alone"));
    let with_tool =
        format!("{AGENT}tools: [{{component_type: ServerTool, id: t, name: add, description: Adds}}]\n");
    assert!(crate::read(&with_tool, None).is_ok());
    let problems = crate::read(&with_tool, Some(&crate::tests::NAMES)).unwrap_err();
    assert_eq!((problems[0].rule, problems.len()), ("AS-59", 1), "{problems:?}");
    assert!(!is_agent_spec("kind: \"openagentspec:v1/agent\"\nname: a\nintent: about component_type\n"));
    assert!(!is_agent_spec("a: b"));
}

/// AGS-01, AS-08, AS-09: a version is a published one.
#[test]
fn a_version_is_known_or_refused() {
    for version in ["25.4.1", "25.4.2", "26.1.0", "26.1.2", "26.2.0", "26.3.1"] {
        let source = AGENT.replace("25.4.1", version);
        assert_eq!((rules(&source), warnings(&source)), (vec![], vec![]), "{version}");
        assert_eq!(Version::parse(version).unwrap().as_str(), version);
    }
    assert_eq!(errors(&with(AGENT, "25.4.1", "20.1.1")), ["AS-08@6:20"]);
    assert_eq!(errors(&with(AGENT, "25.4.1", "26.1")), ["AS-08@6:20"]);
    assert_eq!(warnings(&with(AGENT, "agentspec_version: 25.4.1\n", "")), ["AS-09@1:1"]);
    assert_eq!(warnings(&with(AGENT, "25.4.1", "25.4.0")), ["AS-09@6:20"]);
    assert_eq!(rules(&with(AGENT, "agentspec_version", "air_version")), [""; 0]);
    assert_eq!(rules(&with(AGENT, "25.4.1", "25.3.1")), ["AS-10", "AS-10"]);
}

/// AGS-06, AS-10: what a component uses raises the version that it needs.
#[test]
fn a_component_needs_the_version_that_brought_what_it_uses() {
    let model = "url: http://model.example}";
    for (old, new, least) in [
        (model, "url: http://model.example, api_type: responses}", "25.4.2"),
        (model, "url: http://model.example, api_key: {$component_ref: l.api_key}}", "25.4.2"),
        (model, "url: http://model.example, retry_policy: {max_attempts: 1}}", "26.1.2"),
        (model, "url: http://model.example, ca_file: {$component_ref: l.ca_file}}", "26.1.2"),
        ("system_prompt:", "human_in_the_loop: false\nsystem_prompt:", "25.4.2"),
        (
            "system_prompt:",
            "tools: [{component_type: ServerTool, id: t, name: t, requires_confirmation: true}]\nsystem_prompt:",
            "25.4.2",
        ),
        ("component_type: VllmConfig", "component_type: LlmConfig", "26.1.2"),
    ] {
        let source = with(AGENT, old, new);
        let (versions, mut accepted) = (["25.4.1", "25.4.2", "26.1.2", "26.3.1"], Vec::new());
        for version in versions {
            let found = rules(&source.replace("25.4.1", version));
            match found.as_slice() {
                [] => accepted.push(version),
                found => assert_eq!(found, ["AS-10"], "{new} {version}"),
            }
        }
        assert_eq!(accepted.first(), Some(&least), "{new}");
    }
    for unused in ["api_type: chat_completions", "retry_policy: null", "api_key: null"] {
        let source = with(AGENT, model, &format!("url: http://model.example, {unused}}}"));
        assert_eq!(rules(&source), [""; 0], "{unused}");
    }
}

/// AGS-02, AGS-05, AS-11, AS-12, AS-13, AS-14, AS-15: references lead to one component of the right kind.
#[test]
fn references_are_checked_before_anything_is_built() {
    let flow = |old: &str, new: &str| errors(&with(FLOW, old, new));
    assert_eq!(flow("{$component_ref: end}]", "{$component_ref: ende}]"), ["AS-11@5:57"]);
    assert_eq!(
        flow("start_node: {$component_ref: start}", "start_node: {$component_ref: 7}"),
        ["AS-11@4:30"]
    );
    assert_eq!(flow("id: llm,", "id: end,"), ["AS-12@20:38"]);
    let twice = "end: {$referenced_components: {start: {component_type: EndNode, id: e, name: e}}, component_type: EndNode";
    assert_eq!(flow("end: {component_type: EndNode", twice), ["AS-13@20:34"]);
    assert_eq!(
        flow("end: {component_type: EndNode, id: end", "end: {$component_ref: end, id: end"),
        ["AS-14@5:57", "AS-14@8:98", "AS-14@11:137"]
    );
    assert_eq!(
        flow("llm_config: {component_type: OpenAiConfig", "llm_config: {component_type: ServerTool")[0],
        "AS-15@19:17"
    );
    assert_eq!(
        rules(&with(FLOW, "start_node: {$component_ref: start}", "start_node: {$component_ref: c1}")),
        ["AS-11"]
    );
}

/// AGS-02: a component is defined at any level.
#[test]
fn a_component_may_be_defined_at_any_level() {
    let inner = with(
        FLOW,
        "    llm_config: {component_type: OpenAiConfig, id: llm, name: llm, model_id: small}\n",
        "    llm_config: {$component_ref: other}\n    $referenced_components:\n      other: {$component_ref: llm}\n      \
         llm: {component_type: OpenAiConfig, id: llm, name: llm, model_id: small}\n",
    );
    assert_eq!(rules(&inner), [""; 0]);
    let root =
        format!("$component_ref: a\n$referenced_components:\n  a:\n    {}", AGENT.replace('\n', "\n    "));
    assert_eq!(rules(&root), [""; 0]);
}

/// AGS-02, AS-14: a flow that holds itself ends with an error, not with the stack.
#[test]
fn a_flow_that_runs_itself_is_a_circle() {
    let source = "component_type: FlowNode\nid: n\nname: n\nsubflow: {$component_ref: n}\n$referenced_components:\n  n: {component_type: FlowNode, id: m, name: m, subflow: {$component_ref: n}}\nagentspec_version: 25.4.1\n";
    assert!(rules(source).contains(&"AS-14".to_owned()));
    let values = "component_type: ServerTool\nid: t\nname: t\ninputs: {$component_ref: v}\n$referenced_components:\n  v: [{$component_ref: w}]\n  w: {title: x, default: {$component_ref: v}}\nagentspec_version: 25.4.1\n";
    assert_eq!(rules(values)[0], "AS-14");
}

/// AGS-03, AS-16: the parts of a document are no document, and hold nothing else.
#[test]
fn a_disaggregated_document_is_a_registry_of_others() {
    let parts = "$referenced_components:\n  l: {component_type: VllmConfig, id: m, name: m, model_id: m, url: {$component_ref: host}}\n  host: http://model.example\n";
    let main = with(
        AGENT,
        "{component_type: VllmConfig, id: l, name: model, model_id: m, url: http://model.example}",
        "{$component_ref: l}",
    );
    assert!(is_disaggregated(parts) && !is_disaggregated(&main));
    assert_eq!(errors(&main), ["AS-11@4:13"]);
    assert_eq!(errors(parts), [""; 0]);
    let registry = Registry::default().with_document(parts).unwrap();
    let specification = read_with(&main, &registry);
    let Component::AgenticComponent(AgenticComponent::Agent(agent)) = specification.component() else {
        panic!("{specification:?}");
    };
    assert_eq!(agent.llm_config.url.as_deref(), Some("http://model.example"));
    let as_main = problem_names(agent_spec::read(parts, &registry).map(|read| read.1), Severity::Error);
    assert_eq!(as_main, ["AS-16@1:1"]);
    let more = format!("{parts}name: x\n");
    assert_eq!(errors(&more), ["AS-16@4:1"]);
    assert!(Registry::default().with_document(&more).is_err());
    let text = Registry::default().with_value("l", &json!("no model"));
    assert_eq!(problem_names(lint(&main, &text, None), Severity::Error), ["AS-15@0:0"]);
}

/// AGS-04, AS-18: a secret may be a reference that is open, one that is known, or a value; it is never shown.
#[test]
fn a_secret_is_never_shown() {
    let secret = "sk-very-secret";
    let keyed = |key: &str| {
        let with_key =
            with(AGENT, "url: http://model.example", &format!("url: http://model.example, api_key: {key}"));
        with(&with_key, "25.4.1", "25.4.2")
    };
    let key = |source: &str, registry: &Registry| {
        let specification = read_with(source, registry);
        let Component::AgenticComponent(AgenticComponent::Agent(agent)) = specification.component() else {
            panic!("{specification:?}");
        };
        let shown =
            format!("{specification:?} {agent:?} {registry:?} {}", agent_spec::export(&specification));
        assert!(!shown.contains(secret), "{shown}");
        let key = agent.llm_config.api_key.clone().unwrap();
        assert!(!serde_json::to_string(&key).unwrap().contains(secret));
        (key.reference().map(str::to_owned), key.reveal().cloned())
    };
    let open = keyed("{$component_ref: l.api_key}");
    let reference = Some("l.api_key".to_owned());
    assert_eq!(key(&open, &Registry::default()), (reference.clone(), None));
    let registry = Registry::default().with_value("l.api_key", &json!(secret));
    assert_eq!(key(&open, &registry), (reference, Some(json!(secret))));
    assert_eq!(warnings(&open), [""; 0]);
    let inlined = keyed(secret);
    assert_eq!(warnings(&inlined), ["AS-18@4:111"]);
    assert_eq!(key(&inlined, &Registry::default()), (None, Some(json!(secret))));
    let wrong = Registry::default().with_value("l.api_key", &json!(["sk-very-secret"]));
    let problems = lint(&open, &wrong, None).unwrap_err();
    assert!(problems[0].rule == "AS-06" && !problems[0].message.contains(secret), "{problems:?}");
}
