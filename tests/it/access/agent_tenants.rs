//! Agents that are kept to tenants: for every other tenant they do not exist.

use super::{Client, audit};
use crate::ojs::on_every_store;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;
use turnstone_tests::documents::oas;
use turnstone_tests::ojs_server::Reply;

on_every_store!(
    an_agent_of_other_tenants_does_not_exist,
    jobs_for_an_agent_of_other_tenants_are_refused,
    a_cron_entry_makes_no_job_for_an_agent_of_other_tenants,
    lists_have_no_agents_of_other_tenants,
    a_registration_keeps_replaces_or_removes_the_tenants,
    a_null_tenant_in_meta_is_the_tenant_of_the_key,
);

/// An agent of acme, and the name of one that does not exist.
const KEPT: &str = "vault";
const UNKNOWN: &str = "nowhere";
/// A part of its prompt.
const PROMPT: &str = "You are vault";

async fn keep(server: &OjsServer, query: &str) -> Reply {
    let path = format!("/agents/{KEPT}{query}");
    let yaml = [("Content-Type", "application/yaml")];
    server.send(Method::PUT, &path, &yaml, oas(KEPT, "")).await
}

/// Returns the status and the error of a refusal, which must not depend on the name.
fn refusal(reply: &Reply, name: &str) -> (u16, Value) {
    let text = reply.text.replace(name, UNKNOWN);
    let mut body: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    if let Some(error) = body.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("request_id");
    }
    (reply.status, body)
}

/// Returns a request that is valid for an agent that exists.
fn body_for(method: &Method, path: &str) -> Value {
    let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": "hi"}]});
    match (method, path) {
        (&Method::POST, "/agents/{name}") => json!({"input": "hi"}),
        (&Method::POST, "/agents/{name}/process" | "/agents/{name}/stream_request") => {
            json!({"type": "ChatRequest", "input": "hi"})
        }
        (&Method::POST, "/a2a/{agent}") => {
            json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}})
        }
        _ => Value::Null,
    }
}

/// Every operation with an agent in its path, from `/openapi.json`: another tenant gets the answer for an unknown name.
async fn an_agent_of_other_tenants_does_not_exist(server: &OjsServer) {
    keep(server, "?tenants=acme,beta").await.expect(201);
    let (acme, beta) = (Client::of(server, "acme", "admin").await, Client::of(server, "beta", "admin").await);
    let globex = Client::of(server, "globex", "admin").await;
    let version = [("A2A-Version", "1.0")];
    let document = server.get("/openapi.json").await.expect(200).json();
    let mut seen = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let Some(rest) = path.strip_prefix("/agents/{name}").or_else(|| path.strip_prefix("/a2a/{agent}"))
        else {
            assert!(!path.contains("{agent}") && !path.starts_with("/agents/{"), "{path} names an agent");
            continue;
        };
        for (method, operation) in item.as_object().unwrap() {
            let method: Method = method.to_uppercase().parse().unwrap();
            let prefix = &path[..path.len() - rest.len()];
            let of = |name: &str| {
                let path = format!("{prefix}{rest}").replace("{name}", name).replace("{agent}", name);
                let query = if rest == "/getevents" { "?request_id=x-1" } else { "" };
                path.replace("{id}", "x-1").replace("{request_id}", "x-1") + query
            };
            let body = body_for(&method, path);
            let kept = globex.send_with(method.clone(), &of(KEPT), &version, &body).await;
            let unknown = globex.send_with(method.clone(), &of(UNKNOWN), &version, &body).await;
            assert_eq!(refusal(&kept, KEPT), refusal(&unknown, UNKNOWN), "{method} {path}");
            assert!(!kept.text.contains(PROMPT), "{method} {path}: {}", kept.text);
            if operation["security"][0].get("fleet").is_some() {
                assert_eq!(kept.status, 403, "{method} {path}");
                continue;
            }
            assert_eq!(kept.status, 404, "{method} {path}: {}", kept.text);
            // These wait for a worker, which the server has not.
            let waits = body.get("jsonrpc").is_some() || rest == "/stream_request";
            if !rest.contains('{') && rest != "/getevents" && !waits {
                for own in [&acme, &beta] {
                    let reply = own.send_with(method.clone(), &of(KEPT), &version, &body).await;
                    assert!(reply.status < 400, "{method} {path}: {} {}", reply.status, reply.text);
                }
            }
            seen += 1;
        }
    }
    assert!(seen >= 10, "{seen} operations name an agent");
    assert!(acme.get("/agents/vault").await.expect(200).text.contains(PROMPT));
    // The fleet sees every agent, and with the header of a tenant those of the tenant.
    server.get("/agents/vault").await.expect(200);
    server.send(Method::GET, "/agents/vault", &[("X-OJS-Tenant", "globex")], "").await.expect(404);
}

/// The members of bodies that name an agent.
async fn jobs_for_an_agent_of_other_tenants_are_refused(server: &OjsServer) {
    keep(server, "?tenants=acme").await.expect(201);
    let (acme, globex) =
        (Client::of(server, "acme", "admin").await, Client::of(server, "globex", "admin").await);
    let job = |name: &str| json!({"type": "agent.x", "args": ["hi"], "meta": {"agent": name}});
    let bodies = |name: &str| {
        [
            ("/ojs/v1/jobs", job(name)),
            ("/ojs/v1/jobs/batch", json!({"jobs": [{"type": "a.b", "args": []}, job(name)]})),
            ("/ojs/v1/workflows", json!({"type": "chain", "name": "n", "steps": [job(name), job(name)]})),
        ]
    };
    let before = server.stored_jobs().await;
    for ((path, kept), (_, unknown)) in bodies(KEPT).into_iter().zip(bodies(UNKNOWN)) {
        let kept = globex.post(path, &kept).await;
        let unknown = globex.post(path, &unknown).await;
        assert_eq!(refusal(&kept, KEPT), refusal(&unknown, UNKNOWN), "{path}");
        assert!((400..500).contains(&kept.status), "{path}: {}", kept.text);
        // A principal of the fleet makes no job of a tenant for it either.
        let mut of_globex = job(KEPT);
        of_globex["meta"]["tenant_id"] = json!("globex");
        let refused = server.post("/ojs/v1/jobs", &of_globex).await;
        assert_eq!(refused.status, unknown.status.min(refused.status), "{}", refused.text);
        assert!(refused.status >= 400, "{}", refused.text);
    }
    assert_eq!(server.stored_jobs().await, before, "nothing is stored");
    for (path, body) in bodies(KEPT) {
        let reply = acme.post(path, &body).await;
        assert!(reply.status < 300, "{path}: {}", reply.text);
    }
    server.push(&job(KEPT)).await;
}

async fn a_cron_entry_makes_no_job_for_an_agent_of_other_tenants(server: &OjsServer) {
    keep(server, "?tenants=acme").await.expect(201);
    for (tenant, made) in [("globex", 0), ("acme", 1)] {
        let client = Client::of(server, tenant, "admin").await;
        let entry = |agent: &str| {
            json!({"name": format!("{tenant}-{agent}"), "expression": "* * * * *", "type": "agent.x", "args": ["hi"],
                   "meta": {"agent": agent}})
        };
        let before = server.stored_jobs().await;
        for agent in [KEPT, UNKNOWN] {
            client.post("/ojs/v1/cron", &entry(agent)).await.expect(201);
        }
        server.pass_ms(60_000).await;
        assert_eq!(server.stored_jobs().await - before, made, "{tenant}: when it fires");
        let trigger = async |agent: &str| {
            client.post(&format!("/ojs/v1/cron/{tenant}-{agent}/trigger"), &Value::Null).await
        };
        let (kept, unknown) = (trigger(KEPT).await, trigger(UNKNOWN).await);
        assert_eq!(kept.status == 201, made == 1, "{}", kept.text);
        if made == 0 {
            assert_eq!(refusal(&kept, KEPT), refusal(&unknown, UNKNOWN));
        }
    }
}

async fn lists_have_no_agents_of_other_tenants(server: &OjsServer) {
    keep(server, "?tenants=acme,beta").await.expect(201);
    server.post_text("/agents", oas("desk", "")).await.expect(201);
    let (acme, globex) =
        (Client::of(server, "acme", "viewer").await, Client::of(server, "globex", "viewer").await);
    for path in ["/agents", "/", "/a2a"] {
        let names = |reply: Reply| -> Vec<String> {
            let list = reply.expect(200).json();
            list.as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(names(globex.get(path).await), ["desk"], "{path}");
        assert_eq!(names(acme.get(path).await), ["desk", KEPT], "{path}");
        assert_eq!(names(server.get(path).await), ["desk", KEPT], "{path}");
    }
    let tenants = |reply: Reply| {
        reply.json().as_array().unwrap().iter().map(|agent| agent["tenants"].clone()).collect()
    };
    let own: Vec<Value> = tenants(acme.get("/agents").await);
    assert_eq!(own, [Value::Null, json!(["acme"])], "a tenant sees no name of another");
    let all: Vec<Value> = tenants(server.get("/agents").await);
    assert_eq!(all, [Value::Null, json!(["acme", "beta"])]);
}

async fn a_registration_keeps_replaces_or_removes_the_tenants(server: &OjsServer) {
    let globex = Client::of(server, "globex", "viewer").await;
    let steps = [
        ("", 201, true, Value::Null, 200),
        ("?tenants=acme,beta", 200, true, json!(["acme", "beta"]), 404),
        // Left out, the tenants stay.
        ("", 200, false, json!(["acme", "beta"]), 404),
        ("?tenants=beta,acme", 200, false, json!(["acme", "beta"]), 404),
        ("?tenants=globex", 200, true, json!(["globex"]), 200),
        ("?tenants=acme", 200, true, json!(["acme"]), 404),
        ("?tenants=*", 200, true, Value::Null, 200),
    ];
    for (query, status, changed, tenants, seen) in steps {
        let answer = keep(server, query).await.expect(status).json();
        assert_eq!(
            (&answer["changed"], &answer["tenants"]),
            (&json!(changed), &tenants),
            "{query}: {answer}"
        );
        globex.get("/agents/vault").await.expect(seen);
    }
    keep(server, "?tenants=acme").await.expect(200);
    let posted = server.post_text("/agents", oas(KEPT, "lifespan: {retain_memory: true}")).await;
    assert_eq!(posted.expect(200).json()["tenants"], json!(["acme"]), "a changed document keeps them, too");
    for wrong in ["?tenants=acme,", "?tenants=acme,*", "?tenants=a%20b"] {
        let refused = keep(server, wrong).await.expect(400);
        assert!(refused.text.contains("tenants"), "{wrong}: {}", refused.text);
    }
    globex.get("/agents/vault").await.expect(404);
    let targets: Vec<Value> = audit(server)
        .await
        .into_iter()
        .filter(|entry| entry["action"] == "PUT /agents/{name}" && entry["outcome"] == "done")
        .map(|entry| entry["target"].clone())
        .collect();
    assert!(targets.contains(&json!("/agents/vault?tenants=acme")), "{targets:?}");
    // An agent that is registered anew after its removal serves all tenants.
    server.delete("/agents/vault").await.expect(200);
    assert_eq!(keep(server, "").await.expect(201).json()["tenants"], Value::Null);
}

/// Workers know the tenant of a job by `meta.tenant_id`, which no client leaves empty.
async fn a_null_tenant_in_meta_is_the_tenant_of_the_key(server: &OjsServer) {
    let globex = Client::of(server, "globex", "submitter").await;
    let job =
        json!({"type": "a.b", "args": [], "tenant_id": null, "meta": {"tenant_id": null, "tenant": "acme"}});
    let kept = globex.post("/ojs/v1/jobs", &job).await.expect(201).json();
    assert_eq!(kept["job"]["meta"]["tenant_id"], "globex", "{kept}");
}
