//! Lease tokens: a report with one concerns the attempt that was fetched with it, and no other.

use super::super::on_every_store;
use super::{beat, fetch, push};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;
use turnstone_tests::ojs_server::Reply;

on_every_store![
    a_report_of_an_older_attempt_is_refused,
    a_report_of_an_attempt_that_is_over_is_refused,
    a_report_with_the_current_token_is_accepted,
    a_report_without_a_token_is_accepted_as_before,
    a_beat_with_one_old_token_renews_nothing,
    a_token_of_a_tenants_job_needs_no_tenant,
    a_wrong_token_is_refused_with_its_field,
    only_the_answer_to_a_fetch_has_the_token,
];

/// The requests of a worker about a job: method, path, and body without the token.
fn reports(id: &str) -> [(Method, String, Value); 10] {
    let error = json!({"code": "e", "message": "late"});
    let own = |name: &str| format!("/ojs/v1/jobs/{id}/{name}");
    let post = |path: &str, body: Value| (Method::POST, path.to_owned(), body);
    [
        post("/ojs/v1/workers/heartbeat", json!({"worker_id": "w", "active_jobs": [id]})),
        post("/ojs/v1/workers/beat", json!({"worker_id": "w", "job_id": id})),
        (Method::PUT, own("progress"), json!({"progress": 0.9, "checkpoint": {"late": true}})),
        (Method::PUT, own("checkpoint"), json!({"state": {"late": true}})),
        (Method::POST, own("checkpoint"), json!({"state": {"late": true}})),
        post("/ojs/v1/workers/ack", json!({"job_id": id, "worker_id": "w", "result": "late"})),
        post(&own("ack"), json!({"worker_id": "w", "result": "late"})),
        post("/ojs/v1/workers/nack", json!({"job_id": id, "worker_id": "w", "error": error})),
        post(&own("nack"), json!({"worker_id": "w", "error": error})),
        post(&own("nack"), json!({"worker_id": "w", "requeue": true})),
    ]
}

/// The same requests, and those about a saved state, which have no body.
fn all(id: &str) -> Vec<(Method, String, Value)> {
    let own = format!("/ojs/v1/jobs/{id}/checkpoint");
    let bare = [Method::GET, Method::DELETE].map(|method| (method, own.clone(), Value::Null));
    bare.into_iter().chain(reports(id)).collect()
}

async fn with_header(
    server: &OjsServer,
    (method, path, body): &(Method, String, Value),
    token: &str,
) -> Reply {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    server.send(method.clone(), path, &[("X-OJS-Lease-Token", token)], body).await
}

/// The job that worker `w` fetches next, with its token.
async fn fetched(server: &OjsServer) -> (String, String) {
    let job = fetch(server, json!({"visibility_timeout_ms": 60_000})).await.remove(0);
    (job["id"].as_str().unwrap().to_owned(), job["ext_lease_token"].as_str().unwrap().to_owned())
}

/// A job whose first attempt ran out of time, in its second attempt, with the tokens of both.
async fn fetched_twice(server: &OjsServer) -> (String, String, String) {
    push(server, json!({})).await;
    let (id, first) = fetched(server).await;
    server.put(&format!("/ojs/v1/jobs/{id}/checkpoint"), &json!({"state": {"page": 1}})).await.expect(200);
    server.pass_ms(61_000).await;
    let (again, second) = fetched(server).await;
    assert_eq!((&again, first == second), (&id, false));
    (id, first, second)
}

async fn a_report_of_an_older_attempt_is_refused(server: &OjsServer) {
    let (id, old, _) = fetched_twice(server).await;
    push(server, json!({})).await;
    let (_, other) = fetched(server).await;
    let stored = "SELECT lease_expires_at + events FROM jobs ORDER BY seq LIMIT 1";
    let (before, number) = (server.job(&id).await, server.fleet.number(stored).await);
    server.fleet.clock.advance_ms(1_000);
    for request in all(&id) {
        for token in [&old, &other] {
            let reply = with_header(server, &request, token).await.expect(409);
            assert_eq!(reply.code(), "stale_lease", "{request:?}");
            if request.2.is_null() {
                continue;
            }
            let mut body = request.2.clone();
            body["ext_lease_token"] = token.as_str().into();
            let reply = server.send(request.0.clone(), &request.1, &[], body.to_string()).await.expect(409);
            assert_eq!(reply.code(), "stale_lease", "{request:?}");
        }
    }
    assert_eq!((server.job(&id).await, server.fleet.number(stored).await), (before, number));
    assert_eq!(server.fleet.number("SELECT count(*) FROM workers").await, 0, "no beat counts");
    let progress = server.get(&format!("/ojs/v1/jobs/{id}/progress")).await.expect(200).json();
    assert_eq!(progress["progress"], Value::Null);
    // While no attempt runs, the token is an old one as well.
    server.pass_ms(61_000).await;
    let late = with_header(server, &all(&id)[5], &old).await.expect(409);
    assert_eq!(late.code(), "stale_lease", "a saved state of a job that waits");
}

async fn a_report_of_an_attempt_that_is_over_is_refused(server: &OjsServer) {
    push(server, json!({})).await;
    let (id, token) = fetched(server).await;
    let failed = json!({"job_id": id, "worker_id": "w", "ext_lease_token": token,
                        "error": {"code": "e", "message": "m"}});
    server.post("/ojs/v1/workers/nack", &failed).await.expect(200);
    let before = server.job(&id).await;
    assert_eq!(before["state"], "retryable");
    for report in all(&id) {
        let refused = with_header(server, &report, &token).await.expect(409);
        assert_eq!(refused.code(), "stale_lease", "{report:?}");
    }
    assert_eq!(server.job(&id).await, before);
}

async fn a_report_with_the_current_token_is_accepted(server: &OjsServer) {
    for at in 0..all("").len() {
        let (id, _, token) = fetched_twice(server).await;
        with_header(server, &all(&id)[at], &token).await.expect(200);
        let mut body = all(&id)[at].2.clone();
        if at < 7 && !body.is_null() {
            body["ext_lease_token"] = token.as_str().into();
            let (method, path, _) = all(&id).swap_remove(at);
            server.send(method, &path, &[], body.to_string()).await.expect(200);
        }
        server.delete(&format!("/ojs/v1/jobs/{id}")).await;
    }
    // A repeated acknowledgement says that the job has ended, as without a token.
    let (id, _, token) = fetched_twice(server).await;
    let ack = &reports(&id)[5];
    with_header(server, ack, &token).await.expect(200);
    assert_eq!(with_header(server, ack, &token).await.expect(409).code(), "conflict");
}

/// A worker that sends no token is served as by a server without tokens: the name of the worker is all that counts.
async fn a_report_without_a_token_is_accepted_as_before(server: &OjsServer) {
    for at in 0..all("").len() {
        let (id, ..) = fetched_twice(server).await;
        let (method, path, body) = all(&id).swap_remove(at);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        server.send(method, &path, &[], body).await.expect(200);
        server.delete(&format!("/ojs/v1/jobs/{id}")).await;
    }
}

async fn a_beat_with_one_old_token_renews_nothing(server: &OjsServer) {
    let (late, old, _) = fetched_twice(server).await;
    push(server, json!({})).await;
    let (id, token) = fetched(server).await;
    let leases = "SELECT sum(lease_expires_at) FROM jobs";
    let before = server.fleet.number(&format!("SELECT CAST(({leases}) AS BIGINT) AS n")).await;
    server.fleet.clock.advance_ms(1_000);
    let body =
        |tokens: Value| json!({"worker_id": "w", "active_jobs": [id, late], "ext_lease_tokens": tokens});
    let both = body(json!({&id: token, &late: old}));
    let reply = server.post("/ojs/v1/workers/heartbeat", &both).await.expect(409);
    assert_eq!(
        (reply.code().as_str(), &reply.json()["error"]["details"]["job_ids"]),
        ("stale_lease", &json!([late]))
    );
    assert_eq!(server.fleet.number(&format!("SELECT CAST(({leases}) AS BIGINT) AS n")).await, before);
    // Without the job that it lost, and with a job that is named by its token only.
    let answer = beat(server, json!({"worker_id": "w", "ext_lease_tokens": {&id: token}})).await;
    assert_eq!(answer["jobs_extended"], json!([id]));
}

/// Two tenants chose the same id for their jobs: the token says which of the two is meant.
async fn a_token_of_a_tenants_job_needs_no_tenant(server: &OjsServer) {
    let id = "0190a7b2-0000-7000-8000-000000000001";
    let job = json!({"id": id, "type": "mail.send", "args": [], "options": {"queue": "q"}});
    let mut tokens = Vec::new();
    for tenant in ["alpha", "beta"] {
        let header = [("X-OJS-Tenant", tenant)];
        server.send(Method::POST, "/ojs/v1/jobs", &header, job.to_string()).await.expect(201);
        let body = json!({"queues": ["q"], "worker_id": "w"}).to_string();
        let reply = server.send(Method::POST, "/ojs/v1/workers/fetch", &header, body).await.expect(200);
        tokens.push(reply.json()["jobs"][0]["ext_lease_token"].as_str().unwrap().to_owned());
    }
    assert_ne!(tokens[0], tokens[1]);
    for token in tokens {
        let ack = json!({"job_id": id, "worker_id": "w", "ext_lease_token": token});
        server.post("/ojs/v1/workers/ack", &ack).await.expect(200);
        server.post("/ojs/v1/workers/ack", &ack).await.expect(409);
    }
    assert_eq!(server.fleet.number("SELECT count(*) FROM jobs WHERE state = 'completed'").await, 2);
}

async fn a_wrong_token_is_refused_with_its_field(server: &OjsServer) {
    push(server, json!({})).await;
    let (id, token) = fetched(server).await;
    for wrong in [json!(7), json!(""), json!("a b"), json!("x".repeat(256))] {
        for (method, path, mut body) in reports(&id) {
            body["ext_lease_token"] = wrong.clone();
            let reply = server.send(method, &path, &[], body.to_string()).await.expect(400);
            assert_eq!(reply.json()["error"]["details"]["field"], "ext_lease_token", "{path}");
        }
    }
    for tokens in [json!([token]), json!({&id: 7})] {
        let body = json!({"worker_id": "w", "ext_lease_tokens": tokens});
        server.post("/ojs/v1/workers/heartbeat", &body).await.expect(400);
    }
    let two = json!({"worker_id": "w", "active_jobs": [id, "x"], "ext_lease_token": token});
    server.post("/ojs/v1/workers/heartbeat", &two).await.expect(400);
    let mut ack = reports(&id)[5].clone();
    ack.2["ext_lease_token"] = "another".into();
    with_header(server, &ack, &token).await.expect(400);
    assert_eq!(server.job(&id).await["state"], "active");
}

async fn only_the_answer_to_a_fetch_has_the_token(server: &OjsServer) {
    let (id, old, token) = fetched_twice(server).await;
    let own = format!("/ojs/v1/jobs/{id}");
    let mut shown = String::new();
    for path in [
        &own,
        "/ojs/v1/jobs?queue=q",
        "/ojs/v1/events",
        "/ojs/v1/admin/jobs",
        &format!("/ojs/v1/admin/jobs/{id}"),
        &format!("/ojs/v1/admin/jobs/{id}/raw"),
        &format!("{own}/checkpoint"),
        "/workers",
    ] {
        shown.push_str(&server.get(path).await.text);
    }
    let ack = &reports(&id)[5];
    shown.push_str(&with_header(server, ack, &token).await.expect(200).text);
    assert!(shown.contains(&id));
    assert!(!shown.contains(&old) && !shown.contains(&token), "{shown}");
}
