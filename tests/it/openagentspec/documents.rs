//! Invalid documents over HTTP on both stores: each is refused with the rule that it breaks, and nothing is
//! registered in part.

use futures::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet};

/// Returns a valid document.
fn whole() -> String {
    oas("desk", "capabilities: {search: {}}\n")
}

/// Returns the valid document with another value of a key, or without it.
fn with(key: &str, line: &str) -> String {
    let lines = whole();
    let lines = lines.lines().filter(|own| !own.starts_with(&format!("{key}:"))).map(str::to_owned);
    lines.chain([line.to_owned()]).filter(|line| !line.is_empty()).map(|line| line + "\n").collect()
}

/// Returns every case with the rule that it breaks.
fn cases() -> Vec<(&'static str, String)> {
    let capability = |rest: &str| whole().replace("{search: {}}", &format!("{{search: {{{rest}}}}}"));
    let mut cases = vec![
        ("OAS-05", with("name", "name: -desk")),
        ("OAS-06", with("name", "name: desk-")),
        ("OAS-07", with("name", "name: a..b")),
        ("OAS-15", with("lifespan", "lifespan: {retain_memory: 'no'}")),
        ("OAS-15", with("lifespan", "lifespan: 3")),
        ("OAS-15", with("input_restrictions", "input_restrictions: {}")),
        ("OAS-15", capability("user_identity: 'no'")),
        ("OAS-15", capability("input_restrictions: {assertion: 'true'}")),
        ("OAS-16", with("kind", "kind: openagentspec:v2/agent")),
        ("OAS-17", with("name", "")),
        ("OAS-18", with("description", "")),
        ("OAS-18", with("description", "description: ''")),
        ("OAS-19", with("intent", "")),
        ("OAS-20", with("owner", "")),
        // A tool has its full name only: this would be an agent.
        ("OAS-10", whole().replace("search:", "'oagent://search':")),
        ("OAS-52", with("lifespan", "lifespan: {short_circuit: 0}")),
        ("OAS-52", with("lifespan", "lifespan: {short_circuit: 2.0}")),
        ("OAS-A19", whole() + "capabilities: {search: {}}\n"),
        ("OAS-27", whole().replace("search: {}", "clock: {static_identity: desk}")),
    ];
    cases.extend([("YAML", "kind: [".to_owned())]);
    cases
}

/// OAS-05, OAS-06, OAS-08, OAS-15, OAS-16, OAS-17, OAS-18, OAS-19, OAS-20, OAS-27, OAS-52: each is refused with its
/// rule on both stores, the errors precede the warnings, and no agent is registered.
#[tokio::test]
async fn an_invalid_document_is_refused_with_its_rule() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = Fleet::builder().on(backend).workers(0).start().await;
        for (rule, text) in cases() {
            let (status, refusal) = fleet.send(Method::POST, "/agents", text.clone()).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{rule}: {text}: {refusal:#}");
            let problems = refusal["error"]["details"]["problems"].as_array().unwrap();
            assert!(problems.iter().any(|problem| problem["rule"] == rule), "{rule}: {text}: {refusal:#}");
            assert_eq!(problems[0]["severity"], "error", "{refusal:#}");
        }
        assert_eq!(fleet.get("/agents").await, json!([]));
        let (status, body) = fleet.send(Method::POST, "/agents", whole()).await;
        assert_eq!(status, StatusCode::CREATED, "{body:#}");
        fleet.end().await;
    }))
    .await;
}

/// OAS-33, OAS-36, OAS-A18: a legal assertion that can never hold is registered with a warning that names its rule.
#[tokio::test]
async fn an_assertion_that_can_never_hold_is_a_warning() {
    let fleet = Fleet::builder().workers(0).start().await;
    let restricted = |assertion: &str| {
        oas(
            "desk",
            &format!("capabilities:\n  search:\n    input_restriction:\n      assertion: {assertion}\n"),
        )
    };
    for (rule, text) in [
        ("OAS-33_name", restricted("recent['serch'].inputs.q == 'x'")),
        ("OAS-33_member", restricted("recent.search.input.q == 'x'")),
        ("OAS-33_own", restricted("recent.search.outputs.n > 1")),
        ("OAS-33_type", restricted("history._total")),
        ("OAS-33_never", restricted("'false'")),
        ("OAS-33_pattern", restricted("user.id.matches('[')")),
        ("OAS-45", oas("desk", "guardrails: {input: {tool_name: search, assertion: history._total < 3}}\n")),
        (
            "OAS-A18",
            oas("desk", "capabilities: {search: {input_restriction: {require_review: 'oagent://desk'}}}\n"),
        ),
    ] {
        fleet.send(Method::DELETE, "/agents/desk?allow_unresolved=1", "").await;
        let (status, body) = fleet.send(Method::POST, "/agents?allow_unresolved=1", text.clone()).await;
        assert_eq!(status, StatusCode::CREATED, "{rule}: {text}: {body:#}");
        let rules: Vec<&Value> =
            body["warnings"].as_array().unwrap().iter().map(|one| &one["rule"]).collect();
        assert!(rules.contains(&&json!(rule)), "{rule}: {text}: {body:#}");
    }
    fleet.end().await;
}
