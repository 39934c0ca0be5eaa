//! Tenants: a request with `X-OJS-Tenant` reads and changes rows of that tenant only; a request without it reads all.

use super::on_sqlite_first;
use super::operate::{fail, ids, mortal};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::ojs_server::Reply;
use turnstone_tests::{Backend, Fleet, OjsServer, model_server};

async fn of(server: &OjsServer, tenant: &str, method: Method, path: &str, body: &str) -> Reply {
    server.send(method, path, &[("X-OJS-Tenant", tenant)], body).await
}

async fn push(server: &OjsServer, tenant: &str, job: &Value) -> String {
    let reply = of(server, tenant, Method::POST, "/ojs/v1/jobs", &job.to_string()).await.expect(201);
    reply.json()["job"]["id"].as_str().unwrap().to_owned()
}

/// Every endpoint of a job or a dead letter, with a valid body.
const ABOUT_A_JOB: [(&str, &str, &str); 27] = [
    ("GET", "/ojs/v1/jobs/{id}", ""),
    ("GET", "/ojs/v1/jobs/{id}/events", ""),
    ("GET", "/ojs/v1/jobs/{id}/receipt", ""),
    ("DELETE", "/ojs/v1/jobs/{id}", ""),
    ("POST", "/ojs/v1/jobs/{id}/cancel", ""),
    ("POST", "/ojs/v1/jobs/{id}/activate", ""),
    ("POST", "/ojs/v1/jobs/{id}/ack", r#"{"result":1}"#),
    ("POST", "/ojs/v1/jobs/{id}/nack", r#"{"error":{"code":"e","message":"m"}}"#),
    ("PUT", "/ojs/v1/jobs/{id}/checkpoint", r#"{"state":{}}"#),
    ("GET", "/ojs/v1/jobs/{id}/checkpoint", ""),
    ("DELETE", "/ojs/v1/jobs/{id}/checkpoint", ""),
    ("PUT", "/ojs/v1/jobs/{id}/progress", r#"{"progress":0.5}"#),
    ("GET", "/ojs/v1/jobs/{id}/progress", ""),
    ("POST", "/ojs/v1/agents/{id}/pause", "{}"),
    ("POST", "/ojs/v1/agents/{id}/resume", "{}"),
    ("POST", "/ojs/v1/agents/{id}/fork", "{}"),
    ("POST", "/ojs/v1/agents/{id}/merge", r#"{"branch_a":"a","branch_b":"b","strategy":"ours"}"#),
    ("POST", "/ojs/v1/agents/{id}/tool-retry", r#"{"tool_call_id":"c"}"#),
    ("POST", "/ojs/v1/jobs/{id}/checkpoint", r#"{"state":{}}"#),
    ("GET", "/ojs/v1/jobs/{id}/result", ""),
    ("GET", "/ojs/v1/admin/jobs/{id}", ""),
    ("POST", "/ojs/v1/admin/jobs/{id}/cancel", ""),
    ("POST", "/ojs/v1/admin/jobs/{id}/retry", ""),
    ("GET", "/ojs/v1/dead-letter/{id}", ""),
    ("POST", "/ojs/v1/dead-letter/{id}/retry", ""),
    ("DELETE", "/ojs/v1/dead-letter/{id}", ""),
    ("DELETE", "/ojs/v1/admin/dead-letter/{id}", ""),
];

async fn another_tenants_job_is_hidden(server: &OjsServer) {
    let job = mortal("shared", "email.send");
    let (alive, ended) = (push(server, "alpha", &job).await, push(server, "alpha", &job).await);
    fail(server, &ended).await;
    for id in [&alive, &ended] {
        for (method, path, body) in ABOUT_A_JOB {
            let (method, path) = (method.parse::<Method>().unwrap(), path.replace("{id}", id));
            let reply = of(server, "beta", method.clone(), &path, body).await;
            assert_eq!((reply.status, reply.code()), (404, "not_found".to_owned()), "{method} {path}");
        }
    }
    let shown =
        of(server, "alpha", Method::GET, &format!("/ojs/v1/jobs/{alive}"), "").await.expect(200).json();
    assert_eq!(
        (&shown["job"]["state"], &shown["job"]["meta"]["tenant_id"]),
        (&json!("available"), &json!("alpha"))
    );
    assert_eq!(server.job(&ended).await["state"], "discarded", "without a tenant everything is seen");
    of(server, "alpha", Method::POST, &format!("/ojs/v1/dead-letter/{ended}/retry"), "").await.expect(200);
    of(server, "alpha", Method::POST, &format!("/ojs/v1/jobs/{alive}/cancel"), "").await.expect(200);
}

async fn another_tenants_engagement_is_hidden(server: &OjsServer) {
    let job = json!({"type": "agent.ask", "args": ["hello"], "ext_agent_model": "test/m"});
    let id = push(server, "alpha", &job).await;
    let engagement = server.fleet.engagement_of(&id).await;
    for path in ["", "/messages", "/checkpoints", "/tool-calls", "/audit", "/events"] {
        let path = format!("/engagements/{engagement}{path}");
        assert_eq!(of(server, "beta", Method::GET, &path, "").await.status, 404, "{path}");
        of(server, "alpha", Method::GET, &path, "").await.expect(200);
    }
    for verb in ["pause", "resume"] {
        let path = format!("/ojs/v1/agents/{engagement}/{verb}");
        assert_eq!(of(server, "beta", Method::POST, &path, "{}").await.status, 404, "{path}");
    }
    assert_eq!(server.job(&id).await["state"], "available");
    for (method, path) in [(Method::GET, "/breakers"), (Method::DELETE, "/breakers/tool%2Fdesk%2Fsearch")] {
        of(server, "alpha", method, path, "").await.expect(403);
    }
}

async fn another_tenants_workflow_is_hidden(server: &OjsServer) {
    let step = json!({"type": "a.b", "args": []});
    let chain = json!({"type": "chain", "name": "c", "steps": [step, step]}).to_string();
    let reply = of(server, "alpha", Method::POST, "/ojs/v1/workflows", &chain).await.expect(201).json();
    let path = format!("/ojs/v1/workflows/{}", reply["workflow"]["id"].as_str().unwrap());
    for method in [Method::GET, Method::DELETE] {
        assert_eq!(of(server, "beta", method.clone(), &path, "").await.status, 404, "{method}");
    }
    let shown = of(server, "alpha", Method::GET, &path, "").await.expect(200).json();
    assert_eq!(shown["workflow"]["state"], "running");
}

async fn lists_have_a_tenants_own_rows(server: &OjsServer) {
    let job = mortal("shared", "email.send");
    let (alphas, betas) = (push(server, "alpha", &job).await, push(server, "beta", &job).await);
    let nobodys = server.push(&job).await;
    for id in [&alphas, &betas, &nobodys] {
        fail(server, id).await;
    }
    for (path, list) in [
        ("/ojs/v1/jobs", "jobs"),
        ("/ojs/v1/admin/jobs", "items"),
        ("/ojs/v1/dead-letter", "jobs"),
        ("/ojs/v1/admin/dead-letter", "items"),
    ] {
        let own = of(server, "alpha", Method::GET, path, "").await.expect(200).json();
        assert_eq!(
            (ids(&own[list]), &own["pagination"]["total"]),
            (vec![alphas.clone()], &json!(1)),
            "{path}"
        );
        let all = server.get(path).await.expect(200).json();
        assert_eq!(all["pagination"]["total"], 3, "{path}");
    }
    let stats =
        of(server, "beta", Method::GET, "/ojs/v1/admin/dead-letter/stats", "").await.expect(200).json();
    assert_eq!(stats["total"], 1);
    let stats = of(server, "beta", Method::GET, "/ojs/v1/admin/stats", "").await.expect(200).json();
    assert_eq!(
        (&stats["jobs"]["discarded"], &stats["throughput"]["failed_per_minute"]),
        (&json!(1), &json!(1))
    );
}

async fn bulk_operations_change_a_tenants_own_jobs(server: &OjsServer) {
    let job = mortal("shared", "email.send");
    let (alphas, betas) = (push(server, "alpha", &job).await, push(server, "beta", &job).await);
    let all = json!({"confirm": true, "filter": {"queue": "shared"}}).to_string();
    let reply =
        of(server, "alpha", Method::POST, "/ojs/v1/admin/jobs/bulk/cancel", &all).await.expect(200).json();
    assert_eq!((&reply["matched"], &reply["ids"]), (&json!(1), &json!([alphas])));
    assert_eq!(server.job(&betas).await["state"], "available");
    fail(server, &betas).await;
    for path in ["/ojs/v1/dead-letter/retry", "/ojs/v1/dead-letter/purge"] {
        let none = of(server, "alpha", Method::POST, path, r#"{"confirm":true}"#).await.expect(200).json();
        assert_eq!(none["matched"], 0, "{path}");
    }
    let path = "/ojs/v1/admin/queues/shared/jobs?confirm=true";
    let purged = of(server, "alpha", Method::DELETE, path, "").await.expect(200).json();
    assert_eq!(purged["purged_count"], 1);
    assert_eq!(server.job(&betas).await["state"], "discarded");
}

async fn tenants_are_listed_and_counted(server: &OjsServer) {
    for tenant in ["beta", "alpha", "beta"] {
        push(server, tenant, &mortal("shared", "email.send")).await;
    }
    server.push(&mortal("shared", "email.send")).await;
    let list = server.get("/ojs/v1/admin/tenants").await.expect(200).json();
    assert_eq!(ids(&list["items"]), ["alpha", "beta"]);
    assert_eq!((&list["items"][1]["total_jobs"], &list["pagination"]["total"]), (&json!(2), &json!(2)));
    let stats = server.get("/ojs/v1/admin/tenants/beta/stats").await.expect(200).json();
    assert_eq!(
        (&stats["tenant_id"], &stats["total_jobs"], &stats["jobs"]["available"]),
        (&json!("beta"), &json!(2), &json!(2))
    );
    let nobody = server.get("/ojs/v1/admin/tenants/gamma/stats").await.expect(200).json();
    assert_eq!(nobody["total_jobs"], 0);
    of(server, "alpha", Method::GET, "/ojs/v1/admin/tenants/beta/stats", "").await.expect(404);
    let own = of(server, "alpha", Method::GET, "/ojs/v1/admin/tenants", "").await.expect(200).json();
    assert_eq!(ids(&own["items"]), ["alpha"]);
}

async fn a_tenants_name_is_checked(server: &OjsServer) {
    let long = "t".repeat(129);
    for wrong in ["", "two words", long.as_str()] {
        let reply = of(server, wrong, Method::GET, "/ojs/v1/jobs", "").await;
        assert_eq!((reply.status, reply.code()), (400, "invalid_request".to_owned()), "{wrong:?}");
    }
    of(server, &"t".repeat(128), Method::GET, "/ojs/v1/jobs", "").await.expect(200);
}

async fn another_tenants_cron_entry_is_hidden(server: &OjsServer) {
    let body = json!({"name": "n", "expression": "* * * * *", "job_template": {"type": "a.b", "args": []}});
    of(server, "alpha", Method::POST, "/ojs/v1/cron", &body.to_string()).await.expect(201);
    for (method, path, body) in [
        (Method::GET, "/ojs/v1/cron/n", ""),
        (Method::GET, "/ojs/v1/cron/n/history", ""),
        (Method::PATCH, "/ojs/v1/cron/n", r#"{"enabled":false}"#),
        (Method::POST, "/ojs/v1/cron/n/trigger", ""),
        (Method::DELETE, "/ojs/v1/cron/n", ""),
        (Method::DELETE, "/ojs/v1/crons/n", ""),
    ] {
        assert_eq!(of(server, "beta", method.clone(), path, body).await.status, 404, "{method} {path}");
    }
    assert_eq!(of(server, "beta", Method::GET, "/ojs/v1/cron", "").await.json()["count"], 0);
    // An entry of the same name in another tenant is another entry.
    of(server, "beta", Method::POST, "/ojs/v1/cron", &body.to_string()).await.expect(201);
    of(server, "beta", Method::DELETE, "/ojs/v1/cron/n", "").await.expect(200);
    server.pass_ms(60_000).await;
    let made = of(server, "alpha", Method::GET, "/ojs/v1/jobs", "").await.expect(200).json();
    assert_eq!(
        (&made["pagination"]["total"], &made["jobs"][0]["meta"]["tenant_id"]),
        (&json!(1), &json!("alpha"))
    );
    assert_eq!(of(server, "beta", Method::GET, "/ojs/v1/jobs", "").await.json()["pagination"]["total"], 0);
}

async fn another_tenants_webhook_is_hidden(server: &OjsServer) {
    let subscriptions = "/ojs/v1/webhooks/subscriptions";
    let body = r#"{"url":"https://example.com/hook","events":["*"]}"#;
    let made = of(server, "alpha", Method::POST, subscriptions, body).await.expect(201).json();
    let own = format!("{subscriptions}/{}", made["subscription"]["id"].as_str().unwrap());
    for (method, rest, body) in [
        (Method::GET, "", ""),
        (Method::PATCH, "", r#"{"active":false}"#),
        (Method::GET, "/deliveries", ""),
        (Method::POST, "/test", ""),
        (Method::POST, "/rotate-secret", ""),
        (Method::POST, "/deliveries/01890000-0000-7000-8000-000000000000/redeliver", ""),
        (Method::DELETE, "", ""),
    ] {
        let path = format!("{own}{rest}");
        assert_eq!(of(server, "beta", method.clone(), &path, body).await.status, 404, "{method} {rest}");
    }
    let list = of(server, "beta", Method::GET, subscriptions, "").await.expect(200).json();
    assert_eq!(list["subscriptions"], json!([]));
    let shown = of(server, "alpha", Method::GET, &own, "").await.expect(200).json();
    assert_eq!(shown["subscription"]["active"], true);
}

/// A review belongs to its tenant: other tenants neither see nor answer it.
async fn another_tenants_review_is_hidden(backend: Backend) {
    const AGENT: &str = r#"
kind: "openagentspec:v1/agent"
name: booker
description: An agent that books.
intent: You book what you are asked to book.
owner: tests
capabilities:
  book:
    user_identity: false
    input_restriction:
      assertion: recent["book"].inputs.price <= 800
      require_review: manager
"#;
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => turnstone_tests::Reply::call("book", json!({"price": 1})),
        _ => turnstone_tests::Reply::text("booked"),
    };
    let server = OjsServer::over(Fleet::builder().on(backend).model(script).start().await);
    server.fleet.register(AGENT).await;
    let job = json!({"type": "agent.book", "args": ["book"], "meta": {"agent": "booker"}});
    let id = push(&server, "alpha", &job).await;
    server.fleet.wait_for(&id, &[JobState::Pending]).await;
    let own = of(&server, "alpha", Method::GET, "/reviews?state=open", "").await.expect(200).json();
    let path = format!("/reviews/{}", own["items"][0]["id"].as_str().unwrap());
    let others = of(&server, "beta", Method::GET, "/reviews?state=open", "").await.expect(200).json();
    assert_eq!(others["items"], json!([]));
    for (method, rest) in [(Method::GET, ""), (Method::POST, "/approve"), (Method::POST, "/reject")] {
        let reply = of(&server, "beta", method, &format!("{path}{rest}"), "").await;
        assert_eq!(reply.status, 404, "{rest}: {}", reply.text);
    }
    assert_eq!(server.job(&id).await["state"], "pending");
    of(&server, "alpha", Method::POST, &format!("{path}/approve"), "{\"by\": \"manager\"}").await.expect(200);
    server.fleet.wait_for(&id, &[JobState::Completed]).await;
    server.fleet.end().await;
}

#[tokio::test]
async fn another_tenants_review_is_hidden_on_sqlite() {
    another_tenants_review_is_hidden(Backend::Sqlite).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn another_tenants_review_is_hidden_on_postgres() {
    another_tenants_review_is_hidden(Backend::Postgres).await;
}

on_sqlite_first![
    another_tenants_cron_entry_is_hidden,
    another_tenants_webhook_is_hidden,
    another_tenants_job_is_hidden,
    another_tenants_engagement_is_hidden,
    another_tenants_workflow_is_hidden,
    lists_have_a_tenants_own_rows,
    bulk_operations_change_a_tenants_own_jobs,
    tenants_are_listed_and_counted,
    a_tenants_name_is_checked,
];
