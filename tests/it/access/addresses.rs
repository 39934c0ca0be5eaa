//! Where tools may go: never to this server itself or to the metadata service of a cloud, and with a secret only where it is
//! bound to.

use crate::tools::{parrot, with_servers};
use axum::Router;
use axum::response::Redirect;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use turnstone_domain::JobState;
use turnstone_tests::documents::oas;
use turnstone_tests::model_server::{newest, outcomes};
use turnstone_tests::{Fleet, Reply};
use turnstone_worker::tool::{ToolConfig, ToolPolicy, Toolbox};

/// Returns the configuration of a tool at this URL, which may be private.
fn tool(url: &str) -> BTreeMap<String, ToolConfig> {
    let schema = json!({"type": "object", "required": ["id"]});
    let config = json!({"description": "d", "url": url, "allow_private": true, "input_schema": schema});
    BTreeMap::from([("approve".to_owned(), serde_json::from_value(config).unwrap())])
}

/// A model whose input is the name of the tool to call, or `book`.
fn calls_its_input(request: &Value) -> Reply {
    let input: Value = serde_json::from_str(newest(request)).unwrap_or_default();
    match outcomes(request) {
        0 => Reply::call(input["tool"].as_str().unwrap_or("book"), input["arguments"].clone()),
        _ => {
            Reply::text(request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap())
        }
    }
}

/// A server that sends every request on to this address.
async fn redirecting(to: String) -> String {
    let app = Router::new().fallback(move || async move { Redirect::temporary(&to) });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

/// No section of the configuration names this server or the metadata service of a cloud, in whatever notation.
#[tokio::test]
async fn a_section_at_an_address_of_this_server_is_refused() {
    let fleet = Fleet::builder().workers(0).start().await;
    let port = fleet.url.rsplit_once(':').unwrap().1.to_owned();
    let path = "/reviews/{id}/approve";
    let made = |url: &str| {
        Toolbox::avoiding(fleet.own.clone())
            .with_tools(&tool(url), Arc::new(turnstone_domain::SystemClock))
            .map(drop)
    };
    for host in ["127.0.0.1", "0.0.0.0", "2130706433", "[::ffff:127.0.0.1]"] {
        let problem = made(&format!("http://{host}:{port}{path}")).unwrap_err();
        assert!(
            problem.contains("[tools.approve] url:") && problem.contains("address of this server"),
            "{problem}"
        );
    }
    for url in
        ["http://169.254.169.254/{id}", "http://[fd00:ec2::254]/{id}", "http://metadata.google.internal/{id}"]
    {
        let problem = made(url).unwrap_err();
        assert!(problem.contains("metadata"), "{problem}");
    }
    fleet.end().await;
}

/// ASI03, ASI10: no tool answers the reviews of this server: by address, by name, by redirect, as the endpoint of a document,
/// as an MCP server or with `http_get`.
#[tokio::test]
async fn a_tool_cannot_call_this_api_to_approve_itself() {
    let mut fleet = Fleet::builder().workers(0).model(calls_its_input).start().await;
    fleet.add_worker(4);
    let guarded = "capabilities: {book: {user_identity: false, input_restriction: {require_review: ann}}}\n";
    fleet.register(oas("booker", guarded)).await;
    let job = json!({"type": "agent.book", "args": ["{\"arguments\": {\"price\": 9}}"], "meta": {"agent": "booker"}});
    let waiting = fleet.push(&job).await;
    fleet.wait_for(&waiting, &[JobState::Pending]).await;
    let review = fleet.get("/reviews?state=open").await["items"][0]["id"].as_str().unwrap().to_owned();
    fleet.stop_workers().await;

    let port = fleet.url.rsplit_once(':').unwrap().1.to_owned();
    let path = "/reviews/{id}/approve";
    let policy: ToolPolicy =
        serde_json::from_value(json!({"allowed_hosts": ["localhost", "127.0.0.1"], "allow_private": true}))
            .unwrap();
    let approve = format!("http://localhost:{port}{path}");
    let redirected = redirecting(format!("{}/reviews/{review}/approve", fleet.url)).await;
    let manifest = |name: &str, endpoint: &str| {
        format!(
            "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: {name}, version: 1.0.0}}\nspec:\n  role: You act.\n  \
             llm: {{provider: openai, model: m}}\n  tools:\n    - {{type: http, name: act, endpoint: '{endpoint}'}}\n    \
             - {{type: mcp, server: 'http://localhost:{port}/mcp', capabilities: [look]}}\n"
        )
    };
    fleet.register(manifest("by-address", &format!("{}{path}", fleet.url).replace("{id}", &review))).await;
    fleet.register(manifest("by-name", &approve.replace("{id}", &review))).await;
    for url in [approve.as_str(), redirected.as_str()] {
        let (own, configs, policy) = (fleet.own.clone(), tool(url), policy.clone());
        fleet.add_worker_with(4, |mut deps| {
            let clock = Arc::clone(&deps.clock);
            let toolbox = Toolbox::avoiding(own).with_tools(&configs, Arc::clone(&clock)).unwrap();
            deps.toolbox = toolbox.with_policy(policy, &clock).unwrap();
            deps
        });
        let arguments = json!({"id": review, "by": "ann"});
        let page = json!({"url": format!("{}/reviews/{review}/approve", fleet.url)});
        for (agent, tool, arguments) in [
            (None, "approve", &arguments),
            (None, "http_get", &page),
            (Some("by-address"), "act", &arguments),
            (Some("by-name"), "act", &arguments),
            (Some("by-name"), "look", &arguments),
        ] {
            let input = json!({"tool": tool, "arguments": arguments}).to_string();
            let mut job = json!({"type": "agent.act", "args": [input], "ext_agent_token_budget": 100_000});
            match agent {
                Some(agent) => job["meta"] = json!({"agent": agent}),
                None => {
                    job["ext_agent_model"] = "test/m".into();
                    job["ext_agent_tools"] = json!([{"name": tool}]);
                }
            }
            let id = fleet.push(&job).await;
            let done = fleet.settled(&id).await;
            let result = done["result"].as_str().unwrap_or_default();
            assert!(
                result.starts_with("error ") || done["state"] != "completed",
                "{url} {agent:?} {tool}: {done:#}"
            );
        }
        fleet.stop_workers().await;
    }
    let open = fleet.get("/reviews?state=open").await;
    assert_eq!(
        (&open["items"][0]["id"], &open["items"][0]["votes"]),
        (&json!(review), &json!([])),
        "{open:#}"
    );
    let requests = "SELECT count(*) FROM audit_entries WHERE target LIKE '/reviews/%'";
    assert_eq!(fleet.number(requests).await, 0, "no request has arrived");
    assert_eq!(fleet.tools.calls().len(), 0);
    fleet.end().await;
}

/// A secret of `[tool_policy]` goes only to the host and the port that it is bound to, whichever hosts are allowed.
#[tokio::test]
async fn a_documents_secret_goes_only_where_it_is_bound_to() {
    let mut fleet = Fleet::builder().workers(0).model(calls_its_input).start().await;
    let dir = turnstone_tests::scratch::folder();
    for name in ["own", "other"] {
        std::fs::write(dir.path().join(name), format!("{name}-tern-3307-secret")).unwrap();
    }
    let host = fleet.tools.url.strip_prefix("http://").unwrap().to_owned();
    let file = |name: &str| format!("file:{}", dir.path().join(name).display());
    let policy = json!({"allowed_hosts": ["127.0.0.1", "crm.example"], "allow_private": true, "secrets": {
        "OWN": {"secret": file("own"), "hosts": [host]},
        "OTHER": {"secret": file("other"), "hosts": ["crm.example:443", "127.0.0.1:9"]},
        "FREE": file("other"),
    }});
    let policy: ToolPolicy = serde_json::from_value(policy).unwrap();
    fleet.add_worker_with(4, |mut deps| {
        let clock = Arc::clone(&deps.clock);
        deps.toolbox = deps.toolbox.with_policy(policy, &clock).unwrap();
        deps
    });
    let url = fleet.tools.url.clone();
    let tool = |name: &str, secret: &str| {
        format!(
            "    - {{type: http, name: {name}, endpoint: '{url}/{name}', auth: {{type: bearer, credentials: '${{{secret}}}'}}}}\n"
        )
    };
    fleet
        .register(format!(
            "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: scout, version: 1.0.0}}\nspec:\n  role: You scout.\n  \
             llm: {{provider: openai, model: m}}\n  tools:\n{}{}{}",
            tool("good", "OWN"),
            tool("thief", "OTHER"),
            tool("taker", "FREE")
        ))
        .await;
    let input = json!({"tool": "good", "arguments": {"q": 1}}).to_string();
    let job = json!({"type": "agent.run", "args": [input], "meta": {"agent": "scout"}, "ext_agent_token_budget": 100_000});
    let id = fleet.push(&job).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    let calls = fleet.tools.calls();
    assert_eq!(calls[0].headers["authorization"], "Bearer own-tern-3307-secret");
    let reported = fleet.events_named(&id, "tool.unavailable").await;
    for name in ["thief", "taker"] {
        let event =
            reported.iter().find(|data| data["name"] == name).unwrap_or_else(|| panic!("{reported:#?}"));
        let message = event["message"].as_str().unwrap();
        assert!(message.contains("to which it is not bound") && message.contains("hosts"), "{message}");
    }
    assert!(calls.iter().all(|call| !format!("{call:?}").contains("other-tern")), "{calls:?}");
    fleet.end().await;
}

/// A credential for one tool sends its secret to the tool's own URL. A credential for every tool sends it only where it is
/// bound to.
#[tokio::test]
async fn a_credential_for_every_tool_sends_no_secret_elsewhere() {
    let mut fleet = Fleet::builder().workers(0).model(calls_its_input).start().await;
    let dir = turnstone_tests::scratch::folder();
    let file = dir.path().join("crm");
    std::fs::write(&file, "crm-tern-3307-secret").unwrap();
    let secrets = json!({"CRM": {"secret": format!("file:{}", file.display()), "hosts": ["crm.example"]}});
    let policy: ToolPolicy = serde_json::from_value(json!({ "secrets": secrets })).unwrap();
    fleet.add_worker_with(4, |mut deps| {
        let clock = Arc::clone(&deps.clock);
        deps.toolbox = deps.toolbox.with_policy(policy, &clock).unwrap();
        deps
    });
    for place in ["static:desk/search", "static:roamer/*"] {
        let credential = json!({"header": "X-Key", "secret": "CRM"}).to_string();
        let (status, body) = fleet.send(Method::PUT, &format!("/credentials/{place}"), credential).await;
        assert!(status.is_success(), "{body}");
    }
    for (identity, sent) in [("desk", true), ("roamer", false)] {
        let body =
            format!("capabilities: {{search: {{user_identity: false, static_identity: {identity}}}}}\n");
        fleet.register(oas(identity, &body)).await;
        let input = json!({"tool": "search", "arguments": {}}).to_string();
        let id =
            fleet.push(&json!({"type": "agent.run", "args": [input], "meta": {"agent": identity}})).await;
        let done = fleet.settled(&id).await;
        let result = done["result"].as_str().unwrap_or_default();
        assert_eq!(result.contains("is not bound to the address of `search`"), !sent, "{done:#}");
    }
    let calls = fleet.tools.calls();
    assert_eq!((calls.len(), calls[0].headers["x-key"].as_str()), (1, "crm-tern-3307-secret"));
    fleet.end().await;
}

/// An MCP server of the configuration is not this server either.
#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn an_mcp_server_is_not_this_server() {
    let mut fleet = Fleet::builder().workers(0).model(calls_its_input).start().await;
    let clock: Arc<dyn turnstone_domain::Clock> = Arc::new(turnstone_domain::SystemClock);
    let configs = json!({"own": {"url": format!("{}/mcp", fleet.url), "allow_private": true}});
    let configs = serde_json::from_value(configs).unwrap();
    let problem = Toolbox::avoiding(fleet.own.clone()).with_mcp(&configs, &clock).unwrap_err();
    assert!(problem.contains("[mcp.own] url:") && problem.contains("address of this server"), "{problem}");
    let servers = json!({"parrot": parrot("well", &json!({"tools": ["add"]}))});
    fleet.add_worker_with(4, |deps| with_servers(deps, &servers));
    let input = json!({"tool": "parrot_add", "arguments": {"a": 1, "b": 2}}).to_string();
    let id = fleet
        .push(&json!({"type": "agent.run", "args": [input], "ext_agent_model": "test/m", "ext_agent_tools": [{"name": "parrot.add"}]}))
        .await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["result"], "{\"sum\":3}", "other servers are called: {done:#}");
    fleet.end().await;
}
