//! A key of a tenant sees and changes that tenant's data alone.

use super::{Client, audit};
use crate::ojs::on_every_store;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

const AGENT: &str =
    "kind: openagentspec:v1/agent\nname: desk\ndescription: A desk.\nintent: You help.\nowner: olga\n";

/// Without `X-OJS-Tenant` a key of a tenant is still of its tenant, and the header of another tenant is refused.
async fn the_tenant_comes_from_the_key(server: &OjsServer) {
    let job = json!({"type": "a.b", "args": []});
    let mut ids = Vec::new();
    for tenant in ["alpha", "beta"] {
        let key = Client::of(server, tenant, "submitter").await;
        let kept = key.post("/ojs/v1/jobs", &job).await.expect(201).json();
        assert_eq!(kept["job"]["meta"]["tenant_id"], tenant);
        ids.push(kept["job"]["id"].as_str().unwrap().to_owned());
    }
    let beta = Client::of(server, "beta", "viewer").await;
    let seen = beta.get("/ojs/v1/jobs").await.expect(200).json();
    assert_eq!((seen["jobs"].as_array().unwrap().len(), &seen["jobs"][0]["id"]), (1, &json!(ids[1])));
    beta.get(&format!("/ojs/v1/jobs/{}", ids[0])).await.expect(404);
    let header = [("X-OJS-Tenant", "alpha")];
    beta.send_with(Method::GET, "/ojs/v1/jobs", &header, &Value::Null).await.expect(403);
    let forged = json!({"type": "a.b", "args": [], "meta": {"tenant_id": "alpha"}});
    let key = Client::new(server, &json!({"name": "other", "tenant": "beta", "roles": ["submitter"]})).await;
    let reply = key.post("/ojs/v1/jobs", &forged).await;
    assert!(reply.status != 201 || reply.json()["job"]["meta"]["tenant_id"] == "beta", "{}", reply.text);
}

/// An admin of a tenant is no operator of the fleet, nor of another tenant.
async fn a_tenant_cannot_change_what_others_share(server: &OjsServer) {
    server.post_text("/agents", AGENT).await.expect(201);
    server.push(&json!({"type": "a.b", "args": [], "options": {"queue": "mail"}})).await;
    let beta = Client::of(server, "beta", "admin").await;
    let budget = json!({"name": "tenant/beta", "tokens": 5});
    for (method, path, body) in [
        (Method::PUT, "/ojs/v1/admin/tenants/alpha/limits", json!({"max_concurrency": 0})),
        (Method::PUT, "/ojs/v1/admin/tenants/beta/limits", json!({"max_concurrency": 99})),
        (Method::POST, "/ojs/v1/queues/mail/pause", Value::Null),
        (Method::PUT, "/agents/desk", json!({"kind": "openagentspec:v1/agent", "name": "desk"})),
        (Method::POST, "/agents", json!({"kind": "openagentspec:v1/agent", "name": "manager"})),
        (Method::DELETE, "/agents/desk", Value::Null),
        (Method::PUT, "/budgets/tenant%2Fbeta", budget),
        (Method::DELETE, "/budgets/tenant%2Fbeta", Value::Null),
        (Method::POST, "/keys", json!({"name": "x", "tenant": "alpha", "roles": ["admin"]})),
        (Method::GET, "/audit/chain", Value::Null),
        (Method::GET, "/metrics", Value::Null),
    ] {
        let refused = beta.send(method.clone(), path, &body).await;
        assert!(matches!(refused.status, 403 | 404), "{method} {path}: {} {}", refused.status, refused.text);
    }
    let queue = server.get("/ojs/v1/queues/mail").await.expect(200).json();
    assert!(!queue.to_string().contains("\"paused\":true"), "{queue}");
    // It manages its own keys.
    let own = json!({"name": "x", "roles": ["viewer"]});
    assert_eq!(beta.post("/keys", &own).await.expect(201).json()["tenant"], "beta");
    let alpha = Client::of(server, "alpha", "viewer").await;
    beta.send(Method::DELETE, &format!("/keys/{}", alpha.id), &Value::Null).await.expect(404);
    alpha.get("/ojs/v1/jobs").await.expect(200);
    let keys = beta.get("/keys").await.expect(200).json();
    assert!(keys["keys"].as_array().unwrap().iter().all(|key| key["tenant"] == "beta"), "{keys}");
    let listed = beta.get("/audit").await.expect(200).json();
    assert!(listed["entries"].as_array().unwrap().iter().all(|entry| entry["tenant"] == "beta"), "{listed}");
    server
        .fleet
        .until("refusals are recorded", async || {
            audit(server).await.iter().any(|entry| {
                entry["outcome"] == "403 forbidden"
                    && entry["target"] == "/ojs/v1/queues/mail/pause"
                    && entry["principal"] == "beta/admin-of-beta"
            })
        })
        .await;
}

on_every_store!(the_tenant_comes_from_the_key, a_tenant_cannot_change_what_others_share);
