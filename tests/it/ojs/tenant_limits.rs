//! Limits that operators set for tenants over HTTP (OJS multi-tenancy §8, §10).

use super::on_sqlite_first;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;
use turnstone_tests::ojs_server::Reply;

on_sqlite_first![
    a_tenant_at_its_limit_is_refused,
    scheduled_jobs_have_a_bound_of_their_own,
    a_rate_of_enqueueing_ends_with_its_window,
    limits_are_read_changed_and_deleted,
    unsupported_limits_are_refused,
];

const JOBS: &str = "/ojs/v1/jobs";

fn path(tenant: &str, rest: &str) -> String {
    format!("/ojs/v1/admin/tenants/{tenant}{rest}")
}

async fn push(server: &OjsServer, tenant: &str, body: &Value) -> Reply {
    server.send(Method::POST, JOBS, &[("X-OJS-Tenant", tenant)], body.to_string()).await
}

fn job() -> Value {
    json!({"type": "a.b", "args": []})
}

/// MT-004.
async fn a_tenant_at_its_limit_is_refused(server: &OjsServer) {
    server.put(&path("acme", ""), &json!({"limits": {"max_queue_depth": 2}})).await.expect(200);
    push(server, "acme", &job()).await.expect(201);
    let two = json!({"jobs": [job(), job()]}).to_string();
    let batch =
        |body: String| server.send(Method::POST, "/ojs/v1/jobs/batch", &[("X-OJS-Tenant", "acme")], body);
    let refused = batch(two).await.expect(429);
    assert_eq!((refused.code().as_str(), refused.header("retry-after")), ("TENANT_LIMIT_EXCEEDED", "1"));
    let error = refused.json()["error"].clone();
    assert_eq!(error["retryable"], true);
    let details = json!({"tenant_id": "acme", "limit": "max_queue_depth", "current": 1, "maximum": 2});
    assert_eq!(error["details"], details);
    assert_eq!(server.stored_jobs().await, 1, "it left no rows");
    push(server, "acme", &job()).await.expect(201);
    push(server, "acme", &job()).await.expect(429);
    push(server, "other", &job()).await.expect(201);
    server.push(&job()).await;
    let named = json!({"type": "a.b", "args": [], "meta": {"tenant_id": "acme"}});
    server.post(JOBS, &named).await.expect(429);
    let fetched = json!({"queues": ["default"], "count": 1});
    server.post("/ojs/v1/workers/fetch", &fetched).await.expect(200);
    push(server, "acme", &job()).await.expect(201);
}

async fn scheduled_jobs_have_a_bound_of_their_own(server: &OjsServer) {
    server.put(&path("acme", "/limits"), &json!({"max_scheduled": 1, "reason": "trial"})).await.expect(200);
    let later = json!({"type": "a.b", "args": [], "options": {"delay_until": "+PT1H"}});
    push(server, "acme", &later).await.expect(201);
    let refused = push(server, "acme", &later).await.expect(429);
    assert_eq!(refused.json()["error"]["details"]["limit"], "max_scheduled");
    push(server, "acme", &job()).await.expect(201);
}

async fn a_rate_of_enqueueing_ends_with_its_window(server: &OjsServer) {
    let limits = json!({"max_enqueue_rate": {"limit": 2, "period": "PT1M"}});
    server.put(&path("acme", "/limits"), &limits).await.expect(200);
    for status in [201, 201, 429] {
        push(server, "acme", &job()).await.expect(status);
    }
    server.pass_ms(59_999).await;
    push(server, "acme", &job()).await.expect(429);
    server.pass_ms(1).await;
    push(server, "acme", &job()).await.expect(201);
}

async fn limits_are_read_changed_and_deleted(server: &OjsServer) {
    let nobody = server.get(&path("acme", "")).await.expect(200).json();
    assert_eq!((&nobody["limits"]["max_concurrency"], &nobody["created_at"]), (&Value::Null, &Value::Null));
    let all = json!({"max_concurrency": 5, "max_queue_depth": 6, "max_scheduled": 7,
                     "max_enqueue_rate": {"limit": 8, "period": "PT1S"}, "reason": "as agreed"});
    let made = server.put(&path("acme", "/limits"), &all).await.expect(200).json();
    assert_eq!((&made["reason"], &made["limits"]["max_scheduled"]), (&json!("as agreed"), &json!(7)));
    assert_eq!(made["limits"]["max_enqueue_rate"], json!({"limit": 8, "period_ms": 1_000}));
    push(server, "acme", &job()).await.expect(201);
    let shown = server.get(&path("acme", "")).await.expect(200).json();
    assert_eq!((&shown["limits"], &shown["total_jobs"]), (&made["limits"], &json!(1)));
    server.pass_ms(1_000).await;
    let changed =
        server.put(&path("acme", ""), &json!({"limits": {"max_concurrency": 1}})).await.expect(200).json();
    assert_eq!(changed["limits"]["max_queue_depth"], Value::Null, "a limit that is not set does not apply");
    assert_eq!(changed["created_at"], made["created_at"]);
    assert!(changed["updated_at"].as_str() > made["updated_at"].as_str());
    let list = server.get(&path("acme", "/jobs?state=available")).await.expect(200).json();
    assert_eq!(list["pagination"]["total"], 1);
    for rest in ["", "/jobs"] {
        let other = server.send(Method::GET, &path("acme", rest), &[("X-OJS-Tenant", "beta")], "").await;
        assert_eq!(other.status, 404, "{rest}");
    }
    assert_eq!(server.delete(&path("acme", "")).await.expect(200).json()["deleted"], true);
    server.delete(&path("acme", "")).await.expect(404);
    assert_eq!(server.stored_jobs().await, 1, "its jobs stay");
}

async fn unsupported_limits_are_refused(server: &OjsServer) {
    for (body, status) in [
        (json!({"limits": {"max_concurrency": -1}}), 400),
        (json!({"limits": {"max_concurrency": "many"}}), 400),
        (json!({"limits": {"max_enqueue_rate": {"period": "PT1S"}}}), 400),
        (json!({"limits": 5}), 400),
        (json!({"limits": {}, "fairness_weight": 5}), 422),
        (json!({"limits": {"priority_boost": 5}}), 422),
    ] {
        let reply = server.put(&path("acme", ""), &body).await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text);
    }
    server.put(&path("two%20words", ""), &json!({})).await.expect(400);
    assert_eq!(server.fleet.number("SELECT count(*) FROM tenant_limits").await, 0);
}
