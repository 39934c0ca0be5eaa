//! The header `Idempotency-Key` of requests that enqueue: one request, one set of jobs, one answer.

use super::on_every_store;
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use turnstone_tests::OjsServer;
use turnstone_tests::ojs_server::Reply;

on_every_store![
    a_repeated_request_gets_the_recorded_answer,
    the_answer_stays_when_the_job_completed_and_when_it_was_deleted,
    another_request_under_a_key_is_refused,
    a_key_belongs_to_its_tenant,
    concurrent_requests_under_a_key_are_one_job,
    a_batch_is_enqueued_once,
    an_expired_key_is_deleted_and_may_be_used_again,
    a_refused_request_leaves_no_key,
    a_key_has_1_to_255_printable_characters,
    a_request_whose_answer_was_lost_is_not_applied_again,
    a_repeated_duplicate_is_answered_equally,
];

const JOBS: &str = "/ojs/v1/jobs";
const BATCH: &str = "/ojs/v1/jobs/batch";
const DAY_MS: i64 = 24 * 3_600_000;
const KEYS: &str = "SELECT count(*) FROM idempotency_keys";

fn job(n: i64) -> Value {
    json!({"type": "mail.send", "args": [n], "options": {"queue": "q"}})
}

fn batch(jobs: &[Value]) -> Value {
    json!({"jobs": jobs})
}

async fn post(server: &OjsServer, path: &str, key: &str, body: &Value) -> Reply {
    server.send(Method::POST, path, &[("Idempotency-Key", key)], body.to_string()).await
}

/// Asserts that both answers are equal: status, body and location.
#[track_caller]
fn assert_alike(first: &Reply, again: &Reply) {
    assert_eq!((first.status, &first.text), (again.status, &again.text));
    for name in ["location", "content-type"] {
        assert_eq!(first.header(name), again.header(name), "{name}");
    }
}

async fn fetched(server: &OjsServer) -> Vec<Value> {
    let ask = json!({"queues": ["q"], "worker_id": "w", "count": 10});
    let reply = server.post("/ojs/v1/workers/fetch", &ask).await.expect(200).json();
    reply["jobs"].as_array().unwrap().clone()
}

async fn complete_all(server: &OjsServer) {
    for job in fetched(server).await {
        let ack = json!({"job_id": job["id"], "worker_id": "w", "result": {"n": 1}});
        server.post("/ojs/v1/workers/ack", &ack).await.expect(200);
    }
}

async fn a_repeated_request_gets_the_recorded_answer(server: &OjsServer) {
    let mut sent = job(1);
    sent["options"]["delay_until"] = "+PT5S".into();
    sent["ext_agent_colour"] = "red".into();
    let first = post(server, JOBS, "k-1", &sent).await.expect(201);
    let shown = first.json();
    assert_eq!(
        (&shown["job"]["state"], shown["warnings"].as_array().unwrap().len()),
        (&json!("scheduled"), 1)
    );
    assert_eq!(first.header("location"), format!("/ojs/v1/jobs/{}", shown["id"].as_str().unwrap()));
    server.fleet.clock.advance_ms(1_000);
    // The request id is no part of the comparison.
    let headers = [("Idempotency-Key", "k-1"), ("X-Request-Id", "again")];
    let again = server.send(Method::POST, JOBS, &headers, sent.to_string()).await;
    assert_alike(&first, &again);
    assert_eq!((again.header("x-request-id"), server.stored_jobs().await), ("again", 1));
    let other = post(server, JOBS, "k-2", &sent).await.expect(201);
    assert_ne!(other.text, first.text);
    server.push(&sent).await;
    assert_eq!((server.stored_jobs().await, server.fleet.number(KEYS).await), (3, 2));
}

async fn the_answer_stays_when_the_job_completed_and_when_it_was_deleted(server: &OjsServer) {
    let first = post(server, JOBS, "k", &job(1)).await.expect(201);
    let id = first.json()["id"].as_str().unwrap().to_owned();
    complete_all(server).await;
    assert_eq!(server.job(&id).await["state"], "completed");
    assert_alike(&first, &post(server, JOBS, "k", &job(1)).await);
    server.delete("/ojs/v1/admin/queues/q/jobs?confirm=true").await.expect(200);
    server.get(&format!("/ojs/v1/jobs/{id}")).await.expect(404);
    assert_alike(&first, &post(server, JOBS, "k", &job(1)).await);
    assert_eq!(server.stored_jobs().await, 0);
}

async fn another_request_under_a_key_is_refused(server: &OjsServer) {
    let first = post(server, JOBS, "k", &job(1)).await.expect(201);
    let others = [
        (JOBS, job(2).to_string()),
        (JOBS, format!("{} ", job(1))),
        (JOBS, "not JSON".to_owned()),
        (BATCH, job(1).to_string()),
    ];
    for (path, body) in others {
        let refused = server.send(Method::POST, path, &[("Idempotency-Key", "k")], body).await.expect(409);
        assert_eq!(
            (refused.code().as_str(), &refused.json()["error"]["retryable"]),
            ("conflict", &json!(false))
        );
        assert!(refused.text.contains("Idempotency-Key was used for another request"), "{}", refused.text);
    }
    assert_alike(&first, &post(server, JOBS, "k", &job(1)).await);
    assert_eq!(server.stored_jobs().await, 1);
}

async fn a_key_belongs_to_its_tenant(server: &OjsServer) {
    let mut ids = BTreeSet::new();
    for n in 0..2 {
        for tenant in [None, Some("alpha"), Some("beta")] {
            let mut headers = vec![("Idempotency-Key", "k")];
            headers.extend(tenant.map(|name| ("X-OJS-Tenant", name)));
            let reply =
                server.send(Method::POST, JOBS, &headers, job(1).to_string()).await.expect(201).json();
            assert_eq!(
                reply["job"]["tenant_id"].as_str().or(reply["job"]["meta"]["tenant_id"].as_str()),
                tenant
            );
            assert_eq!(ids.insert(reply["id"].as_str().unwrap().to_owned()), n == 0);
        }
    }
    let headers = [("Idempotency-Key", "k"), ("X-OJS-Tenant", "alpha")];
    server.send(Method::POST, JOBS, &headers, job(2).to_string()).await.expect(409);
    assert_eq!(server.stored_jobs().await, 3);
}

async fn concurrent_requests_under_a_key_are_one_job(server: &OjsServer) {
    for round in 0..10 {
        let key = format!("k-{round}");
        let (alone, body) = (job(round), batch(&[job(round), job(round)]));
        let (mut single, mut many) = (BTreeSet::new(), BTreeSet::new());
        for reply in join_all((0..8).map(|_| post(server, JOBS, &key, &alone))).await {
            single.insert(reply.expect(201).text);
        }
        let key = format!("b-{round}");
        for reply in join_all((0..8).map(|_| post(server, BATCH, &key, &body))).await {
            many.insert(reply.expect(201).text);
        }
        assert_eq!((single.len(), many.len(), server.stored_jobs().await), (1, 1, 3 * (round + 1)));
    }
    // Of several bodies under one key one is enqueued.
    let bodies: Vec<Value> = (100..108).map(job).collect();
    let replies = join_all(bodies.iter().map(|body| post(server, JOBS, "k", body))).await;
    let accepted = replies.iter().filter(|reply| reply.status == 201).count();
    assert!(accepted == 1 && replies.iter().all(|reply| matches!(reply.status, 201 | 409)), "{replies:?}");
    assert_eq!(server.stored_jobs().await, 31);
}

async fn a_batch_is_enqueued_once(server: &OjsServer) {
    let unique = json!({"keys": ["type"], "on_conflict": "ignore"});
    let mut alike = job(3);
    alike["options"]["unique"] = unique;
    alike["type"] = "report".into();
    for (key, body) in
        [("plain", batch(&[job(1), job(2)])), ("unique", batch(&[job(1), alike.clone(), alike]))]
    {
        let first = post(server, BATCH, key, &body).await.expect(201);
        complete_all(server).await;
        let stored = server.stored_jobs().await;
        assert_alike(&first, &post(server, BATCH, key, &body).await);
        assert_eq!(server.stored_jobs().await, stored);
    }
    assert_eq!(server.stored_jobs().await, 4);
}

async fn an_expired_key_is_deleted_and_may_be_used_again(server: &OjsServer) {
    let first = post(server, JOBS, "k", &job(1)).await.expect(201);
    post(server, JOBS, "other", &job(1)).await.expect(201);
    server.fleet.clock.advance_ms(DAY_MS - 1);
    assert_alike(&first, &post(server, JOBS, "k", &job(1)).await);
    server.fleet.clock.advance_ms(1);
    // The expired key has not been deleted yet.
    let second = post(server, JOBS, "k", &job(2)).await.expect(201);
    assert_alike(&second, &post(server, JOBS, "k", &job(2)).await);
    assert_eq!((server.stored_jobs().await, server.fleet.number(KEYS).await), (3, 2));
    server.pass_ms(60_000).await;
    assert_eq!(server.fleet.number(KEYS).await, 1, "the younger one is kept");
    server.pass_ms(DAY_MS).await;
    assert_eq!((server.fleet.number(KEYS).await, server.stored_jobs().await), (0, 3));
}

async fn a_refused_request_leaves_no_key(server: &OjsServer) {
    let wrong = json!({"type": "Mail", "args": []});
    post(server, JOBS, "k", &wrong).await.expect(400);
    post(server, BATCH, "b", &batch(&[job(1), wrong])).await.expect(400);
    let taken = server.push(&job(1)).await;
    let mut again = job(1);
    again["id"] = taken.into();
    assert_eq!(post(server, JOBS, "k", &again).await.expect(409).code(), "duplicate");
    let refused = post(server, BATCH, "b", &batch(&[job(2), again])).await.expect(409).json();
    assert_eq!(refused["error"]["details"]["index"], 1, "{refused}");
    let bound = json!({"backpressure": {"max_depth": 1}});
    server.put("/ojs/v1/admin/queues/q/config", &bound).await.expect(200);
    post(server, JOBS, "k", &job(2)).await.expect(429);
    assert_eq!((server.fleet.number(KEYS).await, server.stored_jobs().await), (0, 1));
    // With room in the queue the same request under the same key is accepted.
    complete_all(server).await;
    let accepted = post(server, JOBS, "k", &job(2)).await.expect(201);
    assert_alike(&accepted, &post(server, JOBS, "k", &job(2)).await);
}

async fn a_key_has_1_to_255_printable_characters(server: &OjsServer) {
    let (long, longest) = ("k".repeat(256), "k".repeat(255));
    for wrong in ["", " ", long.as_str(), "tab\tinside", "schlüssel"] {
        let refused = post(server, JOBS, wrong, &job(1)).await.expect(400);
        assert!(refused.text.contains("Idempotency-Key") && refused.text.contains("255"), "{}", refused.text);
    }
    let twice = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")];
    server.send(Method::POST, JOBS, &twice, job(1).to_string()).await.expect(400);
    assert_eq!(server.stored_jobs().await, 0);
    for right in [longest.as_str(), "a", "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", "a b~!"] {
        let first = post(server, JOBS, right, &job(1)).await.expect(201);
        assert_alike(&first, &post(server, JOBS, right, &job(1)).await);
    }
    assert_eq!(server.stored_jobs().await, 4);
}

async fn a_request_whose_answer_was_lost_is_not_applied_again(server: &OjsServer) {
    let body = job(1).to_string();
    let address = server.fleet.url.trim_start_matches("http://");
    let mut client = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {JOBS} HTTP/1.1\r\nHost: {address}\r\nIdempotency-Key: k\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    server.fleet.until("the job is stored", async || server.stored_jobs().await == 1).await;
    drop(client);
    let again = post(server, JOBS, "k", &job(1)).await.expect(201).json();
    assert_eq!(
        (server.job(again["id"].as_str().unwrap()).await, server.stored_jobs().await),
        (again["job"].clone(), 1)
    );
}

async fn a_repeated_duplicate_is_answered_equally(server: &OjsServer) {
    let mut sent = job(1);
    sent["options"]["unique"] = json!({"keys": ["type"], "on_conflict": "ignore"});
    let id = server.push(&sent).await;
    let first = post(server, JOBS, "k", &sent).await.expect(200);
    assert_eq!((&first.json()["id"], &first.json()["deduplicated"]), (&json!(id), &json!(true)));
    assert_eq!(first.json()["state"], "available");
    complete_all(server).await;
    assert_alike(&first, &post(server, JOBS, "k", &sent).await);
    assert_eq!(server.stored_jobs().await, 1);
}
