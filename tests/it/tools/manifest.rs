//! Agents whose manifest configures how their tools are reached.

use super::{parrot, resolved, with_servers};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_tests::{Fleet, Reply, model_server};
use turnstone_worker::Deps;
use turnstone_worker::tool::ToolPolicy;

fn with_policy(mut deps: Deps, policy: Value) -> Deps {
    let policy: ToolPolicy = serde_json::from_value(policy).unwrap();
    let clock = Arc::clone(&deps.clock);
    deps.toolbox = deps.toolbox.with_policy(policy, &clock).unwrap();
    deps
}

fn manifest(tools: &str) -> String {
    format!(
        "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: scout, version: 1.0.0}}\nspec:\n  role: You scout.\n  \
         llm: {{provider: openai, model: m}}\n  tools:\n{tools}"
    )
}

fn job() -> Value {
    json!({"type": "agent.run", "args": ["go"], "meta": {"agent": "scout"}, "ext_agent_token_budget": 100_000})
}

/// RS-11, RS-14: tools of every type become one per capability with their source. An unsupported tool is left out
/// with a warning, and the turn continues.
#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn every_type_of_tool_is_resolved_or_left_out_with_a_warning() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("add", json!({"a": 20, "b": 22})),
        1 => Reply::call("lookup", json!({"id": "x7"})),
        _ => Reply::text("done"),
    };
    let mut fleet = Fleet::builder().workers(0).model(script).start().await;
    let dir = turnstone_tests::scratch::folder();
    let key = dir.path().join("key");
    std::fs::write(&key, "tern-3307-secret").unwrap();
    let host = fleet.tools.url.strip_prefix("http://").unwrap().to_owned();
    let policy = json!({"allowed_hosts": [host], "allow_private": true,
                        "secrets": {"CRM": {"secret": format!("file:{}", key.display()), "hosts": [host]}}});
    let servers = json!({"parrot": parrot("well", &json!({"tools": ["add", "echo"]}))});
    fleet.add_worker_with(4, |deps| with_policy(with_servers(deps, &servers), policy));
    let url = fleet.tools.url.clone();
    fleet.register(manifest(&format!(
            "    - {{type: function, name: search}}
    - {{type: mcp, server: parrot, capabilities: [{{name: add, description: Sums two numbers.}}]}}
    - {{type: mcp, server: parrot}}
    - {{type: http, name: lookup, endpoint: '{url}/lookup', timeout_ms: 9000, auth: {{type: bearer, credentials: '${{CRM}}'}}}}
    - {{type: http, name: elsewhere, endpoint: 'https://elsewhere.example/'}}
    - {{type: http, name: secretive, endpoint: '{url}/x', auth: {{type: apikey, credentials: '${{OTHER}}'}}}}
    - {{type: mcp, server: gone, capabilities: [far]}}
    - {{type: mcp, server: 'http://127.0.0.1:9/mcp', capabilities: [near]}}
    - {{type: grpc, name: stream}}
    - {{type: kubernetes, name: pods}}
"
        )))
    .await;
    let id = fleet.push(&job()).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["state"], "completed", "{done:#}");
    let calls = fleet.models.calls();
    assert_eq!(
        model_server::offered(&calls[0].request),
        ["search", "add", "lookup", "parrot_add", "parrot_echo"]
    );
    assert!(calls[0].request["tools"].to_string().contains("Sums two numbers."));
    let last = calls[2].request["messages"].to_string();
    assert!(last.contains("42") && last.contains("x7"), "{last}");
    assert_eq!(fleet.tools.calls()[0].input, json!({"id": "x7"}));

    let record = resolved(&fleet, &id).await["resolved"].clone();
    let of = |name: &str| {
        let found = record.as_array().unwrap().iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {record:#}")).clone()
    };
    assert_eq!(of("search")["source"], json!({"type": "manifest", "tool_index": 0}));
    assert_eq!((&of("add")["transport"], &of("add")["source"]["capability"]), (&json!("mcp"), &json!("add")));
    let lookup = of("lookup");
    assert_eq!((&lookup["source"]["tool_index"], &lookup["timeout_ms"]), (&json!(3), &json!(9_000)));
    assert_eq!(lookup["transport"], "http");

    let reported = fleet.events_named(&id, "tool.unavailable").await;
    for (name, word) in [
        ("elsewhere", "allowed_hosts"),
        ("secretive", "OTHER"),
        ("far", "[mcp.gone]"),
        ("near", "allowed_hosts"),
        ("stream", "type grpc"),
        ("pods", "type kubernetes"),
    ] {
        let event = reported.iter().find(|data| data["name"] == name);
        let message = event.unwrap_or_else(|| panic!("{name} in {reported:#?}"))["message"].to_string();
        assert!(message.contains(word), "{name}: {message}");
    }
    fleet.end().await;
}

/// The security model of OSSA: a manifest contains no secret.
#[tokio::test]
async fn a_manifest_with_a_literal_credential_is_refused_and_not_repeated() {
    let fleet = Fleet::builder().workers(0).start().await;
    for tool in [
        "{type: http, name: a, endpoint: 'https://a.example/', auth: {type: bearer, credentials: sk-live-4711}}",
        "{type: mcp, server: x, capabilities: [a], config: {env: {GITHUB_TOKEN: sk-live-4711}}}",
    ] {
        let (status, body) = fleet.send(Method::POST, "/agents", manifest(&format!("    - {tool}\n"))).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body:#}");
        assert!(
            body.to_string().contains("credential") && !body.to_string().contains("sk-live-4711"),
            "{body:#}"
        );
    }
    fleet.end().await;
}

/// A tool that no worker calls with the settings of the server is named when its manifest is registered, for the reason
/// that a turn gives.
#[tokio::test]
async fn an_address_that_is_never_called_is_a_warning_of_the_registration() {
    let tools = "    - {type: http, name: loopback, endpoint: 'http://127.0.0.1:9/x'}
    - {type: http, name: named, endpoint: 'http://localhost:9/x'}
    - {type: http, name: far, endpoint: 'https://far.example/x'}
    - {type: http, name: plain, endpoint: 'http://tools.example/x'}
    - {type: http, name: private, endpoint: 'https://10.0.0.7/x'}
    - {type: http, name: secretive, endpoint: 'https://tools.example/x', auth: {type: bearer, credentials: '${OTHER}'}}
    - {type: mcp, server: 'https://192.168.1.5/mcp', capabilities: [near]}
    - {type: mcp, server: 'https://mcp.example/mcp', capabilities: [remote]}
    - {type: http, name: fine, endpoint: 'https://tools.example/x'}
";
    let policy = json!({"allowed_hosts": ["tools.example", "10.0.0.7", "192.168.1.5"]});
    let mut fleet =
        Fleet::builder().workers(0).tool_policy(&policy).model(|_| Reply::text("done")).start().await;
    let registered = fleet.register(manifest(tools)).await;
    let warnings = registered["warnings"].as_array().unwrap();
    assert!(warnings.iter().all(|one| one["severity"] == "warning" && one["rule"] == "OSSA-tools"));
    fleet.add_worker(4);
    let id = fleet.push(&job()).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let reported = fleet.events_named(&id, "tool.unavailable").await;
    for (line, (name, word)) in [
        ("loopback", "`allowed_hosts`"),
        ("named", "`allowed_hosts`"),
        ("far", "`allowed_hosts`"),
        ("plain", "without TLS"),
        ("private", "not a public address"),
        ("secretive", "the secret OTHER"),
        ("near", "not a public address"),
        ("remote", "`allowed_hosts`"),
    ]
    .into_iter()
    .enumerate()
    {
        let event = reported.iter().find(|data| data["name"] == name);
        let why = event.unwrap_or_else(|| panic!("{name} in {reported:#?}"))["message"].as_str().unwrap();
        let known = format!("the agent runs without `{name}` with this server's settings: {why}");
        let warning = warnings.iter().find(|one| one["message"] == known);
        let warning = warning.unwrap_or_else(|| panic!("{known} in {warnings:#?}"));
        assert_eq!(warning["line"], line + 8, "{warning}");
        assert!(why.contains(word), "{name}: {why}");
    }
    assert_eq!((warnings.len(), reported.len()), (8, 8), "{warnings:#?}");
    fleet.end().await;

    let policy = json!({"allowed_hosts": ["127.0.0.1", "localhost", "*.example", "10.0.0.7", "192.168.1.5"],
                        "allow_private": true, "secrets": {"OTHER": {"secret": "env:X", "hosts": ["tools.example"]}}});
    let open = Fleet::builder().workers(0).tool_policy(&policy).start().await;
    assert_eq!(open.register(manifest(tools)).await["warnings"], json!([]), "the settings allow all of them");
    open.end().await;
}
