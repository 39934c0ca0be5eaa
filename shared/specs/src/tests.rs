mod agent_spec;
mod examples;
mod unenforced;

use crate::{Format, Names, Severity, detect, read};
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::delegation::{ContextTransfer, Delegate, DelegationMode, OnFailure};
use turnstone_domain::agent::{AgentFormat, Memory, ModelRef};

const HEAD: &str = "kind: \"openagentspec:v1/agent\"\nname: desk\ndescription: Finds things.\nintent: You find things.\nowner: u-1\n";
const MANIFEST: &str =
    "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: desk}\nspec:\n  role: You find things.\n";
const NAMES: Names<'static> = Names {
    tools: &["find", "book-flight", "both", "web_search", "clock"],
    keyless: &["clock"],
    servers: &["github"],
    agents: &["helper", "both"],
    remote: &["peer.example", "peer.example:8443"],
    reach: None,
    reviewers: None,
    open: false,
};

/// Returns `rule@line:column` of every problem, errors only.
fn errors(source: &str, names: Option<&Names<'_>>) -> Vec<String> {
    problem_names(
        read(source, names).map_or_else(|problems| problems, |(_, warnings)| warnings),
        Severity::Error,
    )
}

fn warnings(source: &str) -> Vec<String> {
    problem_names(
        read(source, None).map_or_else(|problems| problems, |(_, warnings)| warnings),
        Severity::Warning,
    )
}

fn problem_names(problems: Vec<crate::Problem>, severity: Severity) -> Vec<String> {
    let shown = problems.into_iter().filter(|p| p.severity == severity);
    shown.map(|p| format!("{}@{}:{}", p.rule, p.line, p.column)).collect()
}

fn agent(source: &str) -> AgentDefinition {
    read(source, Some(&NAMES)).unwrap_or_else(|problems| panic!("{source}\n{problems:?}")).0
}

#[test]
fn a_whole_openagentspec_document() {
    let agent = agent(&format!(
        "{HEAD}capabilities:
  find:
  book-flight:
    collect_results: False
    user_identity: false
    static_identity: desk-key
    input_restriction:
      assertion: recent.book-flight.inputs.price <= 800
      require_review: boss
    output_restriction: {{assertion: 'true'}}
exposes:
  reference: recent.book-flight.outputs.reference
lifespan: {{retain_memory: True, short_circuit: 3}}
guardrails: null
"
    ));
    assert_eq!((agent.name.as_str(), agent.format), ("desk", AgentFormat::OpenAgentSpec));
    assert_eq!(
        (agent.description.as_str(), agent.instructions.as_str()),
        ("Finds things.", "You find things.")
    );
    assert_eq!((agent.short_circuit, agent.retain_memory), (Some(3), true));
    assert_eq!(agent.exposes, [("reference".to_owned(), "recent.book-flight.outputs.reference".to_owned())]);
    let [find, book] = agent.capabilities.as_slice() else { panic!("{:?}", agent.capabilities) };
    assert!(find.name == "find" && find.collect_results && find.user_identity);
    assert!(!book.collect_results && !book.user_identity);
    assert_eq!(book.static_identity.as_deref(), Some("desk-key"));
    assert_eq!(book.input_restriction.require_review.as_deref(), Some("boss"));
    assert_eq!(book.input_restriction.assertion.as_deref(), Some("recent.book-flight.inputs.price <= 800"));
    assert_eq!(book.output_restriction.assertion.as_deref(), Some("true"));
}

/// OAS-15, OAS-16, OAS-17, OAS-18, OAS-19, OAS-20, OAS-21: missing or wrong keys are refused, with line and
/// column.
#[test]
fn each_rule_of_openagentspec() {
    let long = format!("name: {}", "a".repeat(254));
    for (head, replaced, rule) in [
        ("kind: \"openagentspec:v1/agent\"", "kind: openagentspec:v2/agent", "OAS-16@1:7"),
        ("kind: \"openagentspec:v1/agent\"\n", "", "OAS-16@1:1"),
        ("name: desk\n", "", "OAS-17@1:1"),
        ("name: desk", "name: 7", "OAS-17@2:7"),
        ("name: desk", long.as_str(), "OAS-03@2:7"),
        ("name: desk", "name: De_sk", "OAS-04@2:7"),
        ("name: desk", "name: '-desk'", "OAS-05@2:7"),
        ("name: desk", "name: desk.", "OAS-06@2:7"),
        ("name: desk", "name: d..k", "OAS-07@2:7"),
        ("description: Finds things.", "description: ' '", "OAS-18@3:14"),
        ("intent: You find things.\n", "", "OAS-19@1:1"),
        ("owner: u-1", "owner: 12", "OAS-20@5:8"),
        ("owner: u-1", "owner: u-1\nowners: u-2", "OAS-15@6:1"),
        ("owner: u-1", "owner: u-1\nowner: u-2", "OAS-A19@6:1"),
        ("owner: u-1", "owner: u-1\n---\nname: b", "OAS-A19@7:1"),
    ] {
        let source = HEAD.replace(head, replaced);
        assert_ne!(source, HEAD);
        assert_eq!(errors(&source, None), [rule], "{source}");
    }
    for (rest, rule) in [
        ("capabilities: {nothing: {}}", "OAS-21@6:16"),
        ("capabilities: {\"oagent://find\": {}}", "OAS-10@6:16"),
        ("capabilities: {\"oagent://example.org/agents/find\": {}}", "OAS-11@6:16"),
        ("capabilities: {web_search: {}}", "OAS-04@6:16"),
        ("capabilities: [find]", "OAS-15@6:15"),
        ("capabilities: {find: {user_identity: 'no'}}", "OAS-15@6:38"),
        ("capabilities: {find: {user_identity: no}}", "OAS-15@6:38"),
        ("capabilities: {find: {input_restrictions: {}}}", "OAS-15@6:23"),
        ("capabilities: {find: {}, find: {}}", "OAS-A19@6:26"),
        ("capabilities: {find: {input_restriction: {require_review: 3}}}", "OAS-30@6:59"),
        ("capabilities: {find: {input_restriction: {require_review: 'no user'}}}", "OAS-30@6:59"),
        (
            "capabilities: {find: {input_restriction: {require_review: 'oagent://h.example/a'}}}",
            "OAS-30@6:59",
        ),
        ("capabilities: {find: {input_restriction: {require_review: 'oagent://x'}}}", "OAS-30@6:59"),
        ("capabilities: {find: {input_restriction: {assertion: '1 +'}}}", "OAS-33@6:54"),
        ("capabilities: {find: {output_restriction: {assertion: now > 1}}}", "OAS-33@6:55"),
        ("capabilities: {find: {output_restriction: {assertion: true}}}", "OAS-33@6:55"),
        ("exposes: {text: history._total}", "OAS-47@6:11"),
        ("exposes: {n: history._}total}", "YAML@6:24"),
        ("exposes: {n: 'nothing'}", "OAS-48@6:14"),
        ("exposes: {n: 3}", "OAS-48@6:14"),
        ("lifespan: {short_circuit: 0}", "OAS-52@6:27"),
        ("lifespan: {short_circuit: '3'}", "OAS-52@6:27"),
        ("lifespan: {short_circuit: 2.5}", "OAS-52@6:27"),
        ("lifespan: {retain_memory: maybe}", "OAS-15@6:27"),
    ] {
        assert_eq!(errors(&format!("{HEAD}{rest}\n"), Some(&NAMES)), [rule], "{rest}");
    }
    for (rest, rules) in [
        ("guardrails: {input: {assertion: '1 +'}}", vec!["OAS-38@6:21"]),
        ("guardrails: {input: {tool_name: find}}", vec!["OAS-38@6:21"]),
        ("guardrails: {input: {tool_name: find, assertion: '1 +'}}", vec!["OAS-40@6:50"]),
        ("guardrails: {output: {tool_name: helper, assertion: 'ok'}}", vec!["OAS-39@6:34"]),
        // Reported once.
        ("guardrails: {input: {tool_name: find, assertion: ''}}", vec!["OAS-38@6:50"]),
        ("capabilities: {find: {input_restriction: {assertion: ' '}}}", vec!["OAS-33@6:54"]),
        ("exposes: {n: ''}", vec!["OAS-48@6:14"]),
    ] {
        assert_eq!(errors(&format!("{HEAD}{rest}\n"), Some(&NAMES)), rules, "{rest}");
    }
}

/// OAS-18, OAS-19: the grammatical person is a matter of style, and a warning.
#[test]
fn what_is_legal_and_odd_is_a_warning() {
    assert_eq!(warnings(&HEAD.replace("Finds things", "You find things")), ["OAS-18@3:14"]);
    assert_eq!(warnings(&HEAD.replace("You find", "I find")), ["OAS-19@4:9"]);
    assert_eq!(
        warnings(&format!("{HEAD}capabilities: {{find: {{input_restriction: {{}}}}}}\n")),
        ["OAS-28@6:42"]
    );
    assert_eq!(warnings(HEAD), Vec::<String>::new());
}

#[test]
fn references_are_resolved_only_when_the_server_is_known() {
    let unknown = format!("{HEAD}capabilities: {{anything-at-all: {{}}}}\n");
    assert_eq!(errors(&unknown, None), Vec::<String>::new());
    // A name that is both a tool and an agent means the tool (OAS-12).
    assert_eq!(agent(&format!("{HEAD}capabilities: {{both: {{}}}}\n")).capabilities.len(), 1);
    let problems = read(&format!("{HEAD}capabilities: {{book-fligth: {{}}}}\n"), Some(&NAMES)).unwrap_err();
    assert!(problems[0].message.contains("did you mean `book-flight`"), "{problems:?}");
}

#[test]
fn every_problem_is_found_in_one_pass() {
    let source = "kind: agent\nname: A\nowner: [x]\ncapabilities:\n  find: {colect_results: true}\n  'oagent://a': {}\nlifespan: {short_circuit: 0}\n";
    let expected =
        ["OAS-18@1:1", "OAS-19@1:1", "OAS-16@1:7", "OAS-04@2:7", "OAS-20@3:8", "OAS-15@5:10", "OAS-52@7:27"];
    assert_eq!(errors(source, None), expected);
}

#[test]
fn a_whole_ossa_manifest() {
    let agent = agent(&format!(
        "{MANIFEST}  llm: {{provider: openai, model: m, temperature: 1, maxTokens: 900, fallback_models: [{{provider: ollama, model: n}}]}}
  tools:
    - {{type: http, name: find, description: Finds., input_schema: {{type: object}}, timeout_ms: 1500}}
    - {{type: function, capabilities: [web_search, {{name: book-flight, timeout: {{execution_seconds: 0.5}}}}]}}
  constraints: {{max_turns: 9, max_tokens: 5000, timeout_seconds: 90, cost: {{maxTokensPerRequest: 4000, maxTokensPerDay: 90000, maxCostPerDay: 12.5, currency: EUR}}, performance: {{timeoutSeconds: 2.5}}}}
  turn_chain: {{max_tool_turns: 4}}
  conversation_memory: {{window_size: 5, max_history_tokens: 700}}
  state: {{context_window: {{max_messages: 6}}}}
"
    ));
    assert_eq!((agent.name.as_str(), agent.format), ("desk", AgentFormat::Ossa));
    assert_eq!(agent.instructions, "You find things.");
    let model =
        |provider: &str, model: &str| ModelRef { provider: Some(provider.into()), model: model.into() };
    assert_eq!(agent.model.models, [model("openai", "m"), model("ollama", "n")]);
    assert_eq!((agent.model.temperature, agent.model.max_tokens), (Some(1.0), Some(900)));
    let names: Vec<_> = agent.capabilities.iter().map(|c| (c.name.as_str(), c.timeout_ms)).collect();
    // A tool without a time of its own has that of the document (RS-42).
    assert_eq!(names, [("find", Some(1500)), ("web_search", Some(2500)), ("book-flight", Some(500))]);
    assert_eq!(agent.capabilities[0].description.as_deref(), Some("Finds."));
    assert_eq!(agent.capabilities[0].input_schema, Some(serde_json::json!({"type": "object"})));
    assert_eq!((agent.limits.max_turns, agent.limits.max_tool_turns), (9, Some(4)));
    assert_eq!((agent.limits.token_budget, agent.limits.model_timeout_ms), (Some(4000), Some(2500)));
    assert_eq!(agent.memory, Memory { window_size: 6, max_history_tokens: Some(700), ..Memory::default() });
    let spending = &agent.spending;
    assert_eq!((spending.tokens_per_day, spending.cost_per_day), (Some(90_000), Some(12_500_000)));
    assert_eq!(spending.currency.as_deref(), Some("EUR"));
}

/// RS-11: every type of tool has an address.
#[test]
fn tools_of_a_manifest_say_how_they_are_reached() {
    use turnstone_domain::agent::{Endpoint, Reached, ToolAuth};
    let source = format!(
        "{MANIFEST}  tools:
    - {{type: function, name: find}}
    - {{type: mcp, server: github, name: search_issues}}
    - {{type: mcp, name: github, capabilities: [list_issues]}}
    - {{type: mcp, server: github, timeout_ms: 900}}
    - {{type: mcp, name: gitlab}}
    - {{type: http, name: crm, endpoint: 'https://crm.example/v1/{{id}}', config: {{method: get}}, auth: {{type: bearer, credentials: '${{CRM}}'}}}}
    - {{type: grpc, name: stream}}
    - {{type: a2a, name: peer}}
"
    );
    let (agent, warnings) = read(&source, Some(&NAMES)).unwrap();
    let reached: Vec<(&str, u32, &Reached)> = agent
        .capabilities
        .iter()
        .map(|c| {
            (c.name.as_str(), c.origin.as_ref().unwrap().tool_index, &c.origin.as_ref().unwrap().reached)
        })
        .collect();
    let github = Reached::Mcp { server: "github".into() };
    let auth = ToolAuth { header: "Authorization".into(), prefix: "Bearer ".into(), secret: "CRM".into() };
    let crm =
        Endpoint { url: "https://crm.example/v1/{id}".into(), method: Some("GET".into()), auth: Some(auth) };
    let unserved = |kind: &str| Reached::Unserved { kind: kind.into() };
    let expected = [
        ("find", 0, &Reached::Registry),
        ("search_issues", 1, &github),
        ("list_issues", 2, &github),
        ("crm", 5, &Reached::Http(crm)),
        ("stream", 6, &unserved("grpc")),
        ("peer", 7, &unserved("a2a")),
    ];
    assert_eq!(reached, expected);
    let sets: Vec<_> = agent.toolsets.iter().map(|set| (set.server.as_str(), set.like.timeout_ms)).collect();
    assert_eq!(sets, [("github", Some(900)), ("gitlab", None)]);
    // RS-14: an unavailable tool is a warning, and the agent is accepted.
    let lines: Vec<u32> = warnings.iter().map(|warning| warning.line).collect();
    assert_eq!(lines, [11, 13, 14], "{warnings:?}");
    let known = "kind: \"openagentspec:v1/agent\"\nname: d\ndescription: d\nintent: i\nowner: o\ncapabilities:\n  github.search: {}\n";
    assert!(read(known, Some(&NAMES)).is_ok());
    assert!(read(&known.replace("github.", "gitlab."), Some(&NAMES)).is_err());
}

#[test]
fn ossa_defaults_are_those_of_the_runtime_semantics() {
    let agent = agent(MANIFEST);
    assert_eq!(
        (agent.limits.max_turns, agent.limits.max_tool_turns, agent.limits.token_budget),
        (50, Some(10), None)
    );
    assert_eq!(agent.memory, Memory { window_size: 20, max_history_tokens: Some(4000), ..Memory::default() });
    let json = r#"{"apiVersion": "ossa/v0.2.9", "kind": "Agent", "metadata": {"name": "a"}, "spec": {"role": "r\u00e9\/"}}"#;
    assert_eq!(read(json, None).unwrap().0.instructions, "ré/");
}

#[test]
fn each_rule_of_ossa() {
    for (head, replaced, rule) in [
        ("apiVersion: ossa/v0.2.9", "apiVersion: ossa/v2", "OSSA-apiVersion@1:13"),
        ("kind: Agent", "kind: Workflow", "OSSA-kind@2:7"),
        ("{name: desk}", "{name: de.sk}", "OSSA-metadata@3:18"),
        ("{name: desk}", "{name: desk, version: v1}", "OSSA-metadata@3:33"),
        ("{name: desk}", "{name: desk, version: 1.0}", "OSSA-metadata@3:33"),
        ("{name: desk}", "{name: desk, author: me}", "OSSA-metadata@3:24"),
        ("  role: You find things.", "  llm: {provider: openai, model: m}", "OSSA-role@5:3"),
        ("role: You find things.", "role: ''", "OSSA-role@5:9"),
        ("kind: Agent", "kind: Agent\nspecs: {}", "OSSA-manifest@3:1"),
    ] {
        let source = MANIFEST.replace(head, replaced);
        assert_ne!(source, MANIFEST);
        assert_eq!(errors(&source, None), [rule], "{source}");
    }
    for (rest, rule) in [
        ("llm: {model: m}", "OSSA-llm@6:8"),
        ("llm: {provider: acme, model: m}", "OSSA-llm@6:19"),
        ("llm: {provider: openai, model: m, temperature: 3}", "OSSA-llm@6:50"),
        ("llm: {provider: openai, model: m, max_token: 3}", "OSSA-llm@6:37"),
        ("llm: {provider: openai, model: m, maxTokens: '5'}", "OSSA-llm@6:48"),
        ("tools: [{name: find}]", "OSSA-tools@6:11"),
        ("tools: [{type: http}]", "OSSA-tools@6:11"),
        ("tools: [{type: http, name: nothing}]", "OSSA-tools@6:30"),
        ("tools: [{type: http, name: helper}]", "OAS-09@6:30"),
        ("tools: [{type: http, name: 'oagent://x'}]", "OAS-10@6:30"),
        (
            "tools: [{type: http, name: find, auth: {type: bearer, credentials: sk-live-1}}]",
            "OSSA-tools@6:57",
        ),
        ("tools: [{type: http, name: find, config: {headers: {api_key: x}}}]", "OSSA-tools@6:55"),
        ("tools: [{type: http, name: find, endpoint: 'ftp://a.example'}]", "OSSA-tools@6:46"),
        (
            "tools: [{type: http, name: find, endpoint: 'https://a.example', auth: {type: bearer}}]",
            "OSSA-tools@6:73",
        ),
        ("tools: [{type: mcp, server: 'https://a.example/mcp'}]", "OSSA-tools@6:31"),
        ("tools: [{source: {type: delegation}, name: find}]", "OAS-10@6:11"),
        ("delegation: {enabled: true, allowed_agents: [nobody]}", "OSSA-collaboration@6:48"),
        ("tools: [{type: http, name: 'f d'}]", "OSSA-tools@6:30"),
        ("tools: [{type: http, name: find, input_schema: {type: strin}}]", "OSSA-tools@6:50"),
        ("tools: [{type: http, name: find}, {type: custom, name: find}]", "OSSA-tools@6:58"),
        ("constraints: {max_turn: 3}", "OSSA-constraints@6:17"),
        ("constraints: {max_turns: 0}", "OSSA-constraints@6:28"),
        ("constraints: {max_tokens: -1}", "OSSA-constraints@6:29"),
        ("constraints: {timeout_seconds: 0}", "OSSA-constraints@6:34"),
        ("constraints: {cost: {maxTokenPerRequest: 5}}", "OSSA-constraints@6:24"),
        ("constraint: {max_turns: 3}", "OSSA-spec@6:3"),
        ("state: {mode: forever}", "OSSA-state@6:17"),
        ("state: {isolation_level: snapshot}", "OSSA-state@6:28"),
        ("state: {ttl: tomorrow}", "OSSA-state@6:16"),
        ("safety: {content_filtering: {action: redact}}", "OSSA-safety@6:40"),
        ("safety: {pii_detection: {types: [iban]}}", "OSSA-safety@6:36"),
        ("identity: {instance_id: {generation: v1}, interaction_id: {}}", "OSSA-identity@6:40"),
        ("prompts: {system: {template: 'Be {{tone}}.'}}", "OSSA-prompts@6:32"),
        ("conversation_memory: {summarization: forget}", "OSSA-conversation_memory@6:40"),
        ("autonomy: {level: none}", "OSSA-autonomy@6:21"),
        ("collaboration: {handoffs: [{target_agent: x}]}", "OSSA-collaboration@6:45"),
        ("collaboration: {handoffs: [{conditions: [always]}]}", "OSSA-collaboration@6:30"),
        (
            "collaboration: {delegation: {enabled: true, allowed_agents: [helper, helper]}}",
            "OSSA-collaboration@6:72",
        ),
        (
            "collaboration: {delegation: {enabled: true, allowed_agents: [helper], type: boss}}",
            "OSSA-collaboration@6:79",
        ),
        (
            "collaboration: {delegation: {enabled: true, allowed_agents: [helper], on_failure: fallback}}",
            "OSSA-collaboration@6:85",
        ),
        (
            "collaboration: {delegation: {enabled: true, allowed_agents: [helper], timeout_ms: 0}}",
            "OSSA-collaboration@6:85",
        ),
        ("constraints: {cost: {maxCostPerDay: 0.0000001}}", "OSSA-constraints@6:39"),
    ] {
        assert_eq!(errors(&format!("{MANIFEST}  {rest}\n"), Some(&NAMES)), [rule], "{rest}");
    }
}

/// RS-24 to RS-26, RS-50: the error policy of a manifest is read; a misspelt code or strategy is refused.
#[test]
fn what_ossa_says_of_errors_is_read() {
    use turnstone_domain::agent::errors::{Breaker, Pause};
    use turnstone_domain::error::{ErrorClass, Strategy};
    let spec = "  error_handlers: [{error_codes: [LLM_ERROR], strategy: escalate, escalation_target: ann}]
  reliability: {retry: {max_attempts: 2, backoff_strategy: linear}, circuit_breaker: {failure_threshold: 2, timeout_seconds: 1.5}}
  llm: {provider: openai, model: m, retry_config: {max_attempts: 5}}
  tools: [{type: http, name: find, parallel: true, capabilities: [{name: find, error_handling: {on_error: ignore}}]}]
  turn_chain: {continue_on_tool_use: false, confirm_between_turns: true}
  constraints: {max_tokens: 500}
";
    let (agent, warnings) = read(&format!("{MANIFEST}{spec}"), None).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let errors = &agent.errors;
    assert_eq!(
        (errors.handlers[0].codes.as_slice(), errors.handlers[0].strategy),
        (&[ErrorClass::LlmError][..], Strategy::Escalate)
    );
    assert_eq!(errors.contact(ErrorClass::LlmError).unwrap().target, "ann");
    let retry = errors.retry.as_ref().unwrap();
    assert_eq!((retry.retries, retry.pause), (Some(1), Pause::Linear), "max_attempts counts the first");
    assert_eq!(errors.model_retry.as_ref().unwrap().retries, Some(4));
    assert_eq!(errors.breaker, Breaker { failure_threshold: 2, timeout_ms: 1500, ..Breaker::default() });
    let find = agent.capability("find").unwrap();
    assert_eq!((find.parallel, find.errors.handler.as_ref().unwrap().strategy), (Some(true), Strategy::Skip));
    assert_eq!(
        (agent.chain.continue_on_tool_use, agent.chain.confirm_between_turns, agent.chain.max_tokens),
        (false, true, Some(500))
    );
    for wrong in [
        "error_handlers: [{error_codes: [TOOL_EROR], strategy: skip}]",
        "error_handlers: [{error_codes: [TOOL_ERROR], strategy: ignore}]",
        "error_handlers: [{error_codes: [TOOL_ERROR], strategy: skip, max_retry: 1}]",
        "reliability: {retry: {max_attempts: 0}}",
        "tools: [{type: http, name: find, error_handling: {on_error: explode}}]",
    ] {
        assert_eq!(errors_of(wrong).len(), 1, "{wrong}");
    }
}

fn errors_of(rest: &str) -> Vec<String> {
    errors(&format!("{MANIFEST}  {rest}\n"), None)
}

/// OAS-09, OAS-10, OAS-12, OAS-13: a bare name is a tool or an agent, `oagent://name` an agent for sure.
#[test]
fn capabilities_of_openagentspec_may_be_agents() {
    let known = |capabilities: &str| {
        read(&format!("{HEAD}capabilities: {{{capabilities}}}\n"), Some(&NAMES)).unwrap().0.capabilities
    };
    let helper = known("helper: {}");
    assert_eq!(
        (helper[0].name.as_str(), helper[0].delegate(false)),
        ("helper", Some(Delegate::named("helper")))
    );
    assert_eq!(helper[0].delegate(true), None, "a tool of this name goes before");
    let both = known("'oagent://both': {}, both: {}");
    assert_eq!(
        (both[0].name.as_str(), both[0].delegate(true)),
        ("oagent://both", Some(Delegate::named("both")))
    );
    assert_eq!((both[1].name.as_str(), both[1].delegate(true)), ("both", None));
    assert_eq!(known("'oagent://helper': {}")[0].name, "helper");
}

/// OSSA §5: delegates and their terms.
#[test]
fn collaboration_of_ossa_makes_delegates() {
    let manifest = format!(
        "{MANIFEST}  reliability: {{failover: {{enabled: true, fallback_agents: [both]}}}}\n  collaboration:\n    \
         delegation: {{enabled: true, allowed_agents: [helper], max_depth: 2, type: parallel, timeout_ms: 900, on_failure: fallback,\n      \
         context_propagation: {{custom_context: {{team: a}}}}}}\n    \
         handoffs: [{{target_agent: both, conditions: [angry], context_transfer: full}}]\n"
    );
    let (agent, warnings) = read(&manifest, Some(&NAMES)).unwrap();
    assert_eq!((warnings.len(), agent.limits.max_delegation_depth), (0, 2), "{warnings:?}");
    let [helper, both] = agent.capabilities.as_slice() else { panic!("{:?}", agent.capabilities) };
    let terms = helper.delegate(true).unwrap();
    assert_eq!(
        (terms.agent.as_str(), terms.mode, terms.timeout_ms),
        ("helper", DelegationMode::Parallel, Some(900))
    );
    assert_eq!(terms.on_failure, OnFailure::Fallback { agents: vec!["both".into()] });
    assert_eq!((terms.context, &terms.custom_context["team"]), (ContextTransfer::Partial, &"a".into()));
    let handoff = both.delegate(true).unwrap();
    assert_eq!(
        (handoff.mode, handoff.context, handoff.on_failure),
        (DelegationMode::Handoff, ContextTransfer::Full, OnFailure::Escalate)
    );
    assert!(both.description.as_deref().is_some_and(|text| text.contains("angry")));
    assert_eq!(read(MANIFEST, None).unwrap().0.limits.max_delegation_depth, 3);
}

#[test]
fn hostile_documents_are_refused_quickly() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let items = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    let deep_json = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    let deep_yaml: String = (0..200).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let wide = format!("a: [{}]", "1,".repeat(30_000));
    let large = format!("a: {}", "x".repeat(2 * 1024 * 1024));
    for source in [bomb, deep_json, deep_yaml, wide, large] {
        let problems = read(&source, None).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].rule, "OAS-A19", "{}", problems[0]);
    }
    let sum = format!("{HEAD}exposes: {{n: '1{}'}}\n", "+1".repeat(2048));
    assert_eq!(errors(&sum, None), ["OAS-48@6:14"]);
    for (broken, rule) in [
        ("a: [1, 2", "YAML"),
        ("a: *nope", "YAML"),
        ("a: !!python/object x", "YAML"),
        ("", "OAS-16"),
        ("hello", "OAS-16"),
        ("[1]", "OAS-16"),
        ("openapi: 3.1.0", "OAS-16"),
    ] {
        let problems = read(broken, None).unwrap_err();
        assert_eq!(problems[0].rule, rule, "{broken}: {}", problems[0]);
    }
}

#[test]
fn formats_are_distinguished() {
    assert_eq!(detect(HEAD), Ok(Format::OpenAgentSpec));
    assert_eq!(detect(MANIFEST), Ok(Format::Ossa));
    assert!(detect("kind: Deployment").is_err());
}

/// RS-01, RS-08, RS-16, RS-17, RS-23, RS-30: sections that the runtime follows, with their defaults.
#[test]
fn ossa_sections_are_read_with_their_defaults() {
    use turnstone_domain::agent::safety::{FilterAction, PersonalKind, Threshold};
    use turnstone_domain::agent::{Forgetting, Isolation, Prompts, Safety, StateMode, StateOptions};
    use turnstone_domain::ids::IdForm;
    let read = |rest: &str| agent(&format!("{MANIFEST}  {rest}\n"));
    let plain = agent(MANIFEST);
    assert_eq!((plain.safety, plain.prompts), (Safety::default(), Prompts::default()));
    assert_eq!((plain.state, plain.identity.interaction_id), (StateOptions::default(), IdForm::UuidV7));

    let ids =
        read("identity: {instance_id: {generation: ulid}, interaction_id: {generation: custom}}").identity;
    assert_eq!(
        (ids.instance_id, ids.interaction_id, ids.session_id),
        (IdForm::Ulid, IdForm::UuidV4, IdForm::UuidV7)
    );
    let closed = "identity: {instance_id: {}, interaction_id: {}, propagation: {inherit_session: false, trace_context: none, baggage: false}}";
    let ids = read(closed).identity;
    assert!(!ids.inherit_session && !ids.trace_context && !ids.baggage);

    let safety = read("safety: {content_filtering: {}, pii_detection: {types: [ssn], action: block}}").safety;
    let content = safety.content.unwrap();
    assert_eq!(
        (content.categories.len(), content.threshold, content.action),
        (5, Threshold::Medium, FilterAction::Block)
    );
    let personal = safety.personal.unwrap();
    assert_eq!((personal.kinds.as_slice(), personal.action), (&[PersonalKind::Ssn][..], FilterAction::Block));
    let output = read("security: {output_filtering: {action: redact}}").safety.output.unwrap();
    assert_eq!((output.kinds.len(), output.action), (5, FilterAction::Redact));
    assert_eq!(read("safety: {content_filtering: {enabled: false}}").safety, Safety::default());

    let prompts = read(
        "prompts: {system: {template: 'Be {{ tone }}, {{tone}}!', variables: {tone: kind}}, few_shot_examples: [{input: a, output: b, context: c}]}",
    )
    .prompts;
    assert_eq!(prompts.system.as_deref(), Some("Be kind, kind!"));
    assert_eq!(
        (prompts.examples[0].input.as_str(), prompts.examples[0].context.as_deref()),
        ("a", Some("c"))
    );

    let state = read("state: {mode: persistent, isolation_level: repeatable_read, ttl_seconds: 60}").state;
    assert_eq!(
        (state.mode, state.isolation, state.ttl_seconds),
        (StateMode::LongRunning, Isolation::RepeatableRead, Some(60))
    );
    assert_eq!(read("state: {enabled: true}").state.mode, StateMode::Session);
    assert_eq!(read("state: {mode: session, enabled: false}").state.mode, StateMode::Stateless);
    assert_eq!(read("state: {mode: none}").state.mode, StateMode::Stateless);

    let memory = |rest: &str| read(rest).memory.strategy;
    assert_eq!(memory("conversation_memory: {summarization: summarize}"), Forgetting::Summarize);
    assert_eq!(memory("conversation_memory: {summarization: truncate}"), Forgetting::Truncate);
    assert_eq!(memory("state: {context_window: {strategy: sliding_window}}"), Forgetting::Sliding);

    let model =
        read("llm: {provider: openai, model: m, topP: 0.5, frequencyPenalty: 1, presencePenalty: -1}").model;
    assert_eq!(
        (model.top_p, model.frequency_penalty, model.presence_penalty),
        (Some(0.5), Some(1.0), Some(-1.0))
    );
}
