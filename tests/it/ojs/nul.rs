//! U+0000, which no text of PostgreSQL holds, is refused with 400 wherever a client sends it, by both databases alike.

use super::on_every_store;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;
use turnstone_tests::ojs_server::Reply;

on_every_store![
    every_operation_with_a_body_refuses_nul,
    the_place_of_nul_is_named,
    paths_and_queries_with_nul_are_refused,
    documents_of_agents_with_nul_are_refused,
    neighbours_of_a_batch_with_nul_are_refused_with_it,
];

/// A document of the agent that the operations address.
const DESK: &str = "kind: \"openagentspec:v1/agent\"\nname: desk\ndescription: Finds things.\nintent: You find things.\n\
                    owner: tests\n";

async fn register_desk(server: &OjsServer) {
    server.send(Method::POST, "/agents", &[("Content-Type", "application/yaml")], DESK).await.expect(201);
}

/// Returns why a reply is not the refusal of U+0000, if it is not.
fn wrong(what: &str, reply: &Reply) -> Option<String> {
    let error = &reply.json()["error"];
    let names_it = error["message"].as_str().is_some_and(|text| text.contains("U+0000"));
    let is_refusal = reply.status == 400 && error["code"] == "invalid_request" && error["retryable"] == false;
    (!is_refusal || !names_it).then(|| format!("{what}: {} {}", reply.status, reply.text))
}

async fn every_operation_with_a_body_refuses_nul(server: &OjsServer) {
    register_desk(server).await;
    let before = server.fleet.number("SELECT count(*) FROM journal").await;
    let document = server.get("/openapi.json").await.expect(200).json();
    let (mut checked, mut faults) = (0, Vec::new());
    for (path, item) in document["paths"].as_object().unwrap() {
        let address = path.replace("{agent}", "desk").replace("/agents/{name}", "/agents/desk");
        let address = address.replace(['{', '}'], "");
        for (method, operation) in item.as_object().unwrap() {
            if operation.get("requestBody").is_none() {
                continue;
            }
            checked += 1;
            let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {},
                              "input": "a\u{0}b", "deep": [{"a\u{0}b": 1}]});
            let headers = [("Content-Type", "application/json"), ("A2A-Version", "1.0")];
            let reply = server.send(method.clone(), &address, &headers, body.to_string()).await;
            let what = format!("{method} {path}");
            if path.starts_with("/a2a/") {
                // An error of JSON-RPC has the status 200.
                let error = &reply.json()["error"];
                let is_refusal =
                    error["code"] == -32602 && error["message"].as_str().unwrap().contains("U+0000");
                faults.extend((!is_refusal).then(|| format!("{what}: {}", reply.text)));
            } else {
                faults.extend(wrong(&what, &reply));
            }
        }
    }
    assert!(checked > 50, "{checked}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(server.stored_jobs().await, 0, "a refused request leaves nothing");
    assert_eq!(server.fleet.number("SELECT count(*) FROM journal").await, before);
}

async fn the_place_of_nul_is_named(server: &OjsServer) {
    let mut faults = Vec::new();
    for (more, field) in [
        (json!({"meta": {"agent": "a\u{0}b"}}), "meta.agent"),
        (json!({"type": "a.b\u{0}"}), "type"),
        (json!({"args": ["fine", {"to": "\u{0}"}]}), "args[1].to"),
        (json!({"options": {"queue": "q\u{0}"}}), "options.queue"),
        (json!({"options": {"tags": ["t\u{0}"]}}), "options.tags[0]"),
        (json!({"options": {"unique": {"keys": ["\u{0}"]}}}), "options.unique.keys[0]"),
        (json!({"meta": {"a\u{0}b": 1}}), "meta.a\u{FFFD}b"),
        (json!({"unknown": {"x": ["\u{0}"]}}), "unknown.x[0]"),
    ] {
        let mut job = json!({"type": "a.b", "args": []});
        job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let reply = server.post("/ojs/v1/jobs", &job).await;
        faults.extend(wrong(field, &reply));
        let named = reply.json()["error"]["details"]["field"].clone();
        faults.extend((named != field).then(|| format!("{field} is named {named}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(server.stored_jobs().await, 0);
    // The escape of a backslash before the digits is no U+0000.
    let text = r#"{"type":"a.b","args":["\\u0000"],"meta":{"agent_note":"u0000"}}"#;
    let id = server.post_text("/ojs/v1/jobs", text).await.expect(201).json()["job"]["id"].clone();
    assert_eq!(server.job(id.as_str().unwrap()).await["args"], json!(["\\u0000"]));
}

async fn paths_and_queries_with_nul_are_refused(server: &OjsServer) {
    let mut faults = Vec::new();
    for path in [
        "/ojs/v1/jobs/a%00b",
        "/ojs/v1/queues/a%00b",
        "/ojs/v1/cron?limit=%00",
        "/ojs/v1/admin/jobs?queue=a%00b",
        "/agents/a%00b",
        "/engagements/a%00b",
        "/engagements?agent=a%00b",
        "/reviews?after=%00",
        "/a2a/a%00b/.well-known/agent-card.json",
    ] {
        let reply = server.get(path).await;
        let known = reply.status != 404 && !reply.text.contains("is no parameter of this endpoint");
        faults.extend(wrong(path, &reply).filter(|_| known));
        assert!((400..500).contains(&reply.status), "{path}: {} {}", reply.status, reply.text);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

async fn documents_of_agents_with_nul_are_refused(server: &OjsServer) {
    let yaml = DESK.replace("Finds things.", "\"Finds\\0 things.\"");
    let plain = DESK.replace("You find", "You\0find");
    let as_json = json!({"kind": "openagentspec:v1/agent", "name": "desk", "description": "a\u{0}b",
                         "intent": "You find things.", "owner": "tests"});
    let bundle = json!({"document": yaml});
    let flow = "component_type: Flow\nagentspec_version: \"25.4.1\"\nid: f\nname: \"a\\x00b\"\n".to_owned();
    let mut faults = Vec::new();
    for (what, document) in [
        ("YAML", yaml),
        ("a byte", plain),
        ("JSON", as_json.to_string()),
        ("a bundle", bundle.to_string()),
        ("a flow", flow),
    ] {
        for (method, path) in [(Method::POST, "/agents"), (Method::PUT, "/agents/desk")] {
            let headers = [("Content-Type", "application/yaml")];
            let reply = server.send(method.clone(), path, &headers, document.clone()).await;
            faults.extend(wrong(&format!("{method} {what}"), &reply));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert_eq!(server.get("/agents").await.json(), json!([]));
    // In a plain text of YAML, a backslash and digits are no escape.
    let literal = DESK.replace("Finds things.", "'Finds \\u0000.'");
    server.send(Method::POST, "/agents", &[("Content-Type", "application/yaml")], literal).await.expect(201);
}

async fn neighbours_of_a_batch_with_nul_are_refused_with_it(server: &OjsServer) {
    let job = |to: &str| json!({"type": "a.b", "args": [to]});
    let reply = server.post("/ojs/v1/jobs/batch", &json!({"jobs": [job("a"), job("b\u{0}")]})).await;
    assert_eq!(wrong("a batch", &reply), None);
    assert_eq!(reply.json()["error"]["details"]["field"], "jobs[1].args[0]");
    assert_eq!(server.stored_jobs().await, 0, "a batch is enqueued whole or not at all");
    let pushed: Value =
        server.post("/ojs/v1/jobs/batch", &json!({"jobs": [job("a")]})).await.expect(201).json();
    assert!(pushed["jobs"][0]["id"].is_string(), "{pushed}");
}
