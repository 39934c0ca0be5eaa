//! Reservations that expire, and attempts that take too long (OJS worker protocol §6).

use super::super::on_sqlite_first;
use super::{ack, beat, fetch, held, nack, push, retry};
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    an_expired_reservation_makes_the_job_available_at_once,
    by_default_a_job_is_reserved_for_half_an_hour,
    after_the_last_attempt_a_lost_reservation_discards,
    a_beat_renews_for_the_whole_time,
    a_beat_may_ask_for_another_time,
    an_attempt_over_its_timeout_fails_despite_beats,
    a_worker_whose_beats_stop_loses_its_jobs,
    a_worker_without_beats_keeps_its_jobs,
];

fn types(job: &Value) -> Vec<&str> {
    job["errors"].as_array().unwrap().iter().map(|error| error["type"].as_str().unwrap()).collect()
}

async fn an_expired_reservation_makes_the_job_available_at_once(server: &OjsServer) {
    let id = push(server, retry(3)).await;
    assert_eq!(fetch(server, json!({"visibility_timeout_ms": 3000})).await.len(), 1);
    server.pass_ms(2_999).await;
    assert_eq!(server.job(&id).await["state"], "active");
    server.pass_ms(1).await;
    let job = server.job(&id).await;
    assert_eq!((&job["state"], types(&job)), (&json!("available"), vec!["visibility_timeout"]));
    assert_eq!(ack(server, &id).await.expect(409).code(), "conflict");
    assert_eq!(fetch(server, json!({})).await[0]["attempt"], 2);
}

async fn by_default_a_job_is_reserved_for_half_an_hour(server: &OjsServer) {
    let id = held(server, json!({})).await;
    server.pass_ms(1_799_999).await;
    assert_eq!(server.job(&id).await["state"], "active");
    server.pass_ms(1).await;
    assert_eq!(server.job(&id).await["state"], "available");
}

async fn after_the_last_attempt_a_lost_reservation_discards(server: &OjsServer) {
    let id = push(server, retry(2)).await;
    for state in ["available", "discarded"] {
        fetch(server, json!({"visibility_timeout_ms": 1000})).await;
        server.pass_ms(1_000).await;
        assert_eq!(server.job(&id).await["state"], state);
    }
    let job = server.job(&id).await;
    assert_eq!(types(&job), ["visibility_timeout", "visibility_timeout"]);
    assert!(job["discarded_at"].is_string());
}

async fn a_beat_renews_for_the_whole_time(server: &OjsServer) {
    let id = push(server, json!({})).await;
    fetch(server, json!({"visibility_timeout_ms": 3000})).await;
    for _ in 0..3 {
        server.pass_ms(2_000).await;
        let reply = beat(server, json!({"worker_id": "w", "active_jobs": [id]})).await;
        assert_eq!((&reply["state"], &reply["jobs_extended"]), (&json!("running"), &json!([id])));
    }
    server.pass_ms(2_999).await;
    assert_eq!(server.job(&id).await["state"], "active");
    server.pass_ms(1).await;
    assert_eq!(server.job(&id).await["state"], "available");
}

async fn a_beat_may_ask_for_another_time(server: &OjsServer) {
    let id = push(server, json!({})).await;
    fetch(server, json!({"visibility_timeout_ms": 3000})).await;
    beat(server, json!({"worker_id": "w", "job_id": id, "visibility_timeout_ms": 10_000})).await;
    server.pass_ms(9_999).await;
    assert_eq!(server.job(&id).await["state"], "active");
    server.pass_ms(1).await;
    assert_eq!(server.job(&id).await["state"], "available");
}

async fn an_attempt_over_its_timeout_fails_despite_beats(server: &OjsServer) {
    let mut options = retry(2);
    options["timeout_ms"] = 2_000.into();
    let id = held(server, options).await;
    server.pass_ms(1_999).await;
    beat(server, json!({"worker_id": "w", "active_jobs": [id]})).await;
    assert_eq!(server.job(&id).await["state"], "active");
    server.pass_ms(1).await;
    let job = server.job(&id).await;
    assert_eq!((&job["state"], types(&job)), (&json!("retryable"), vec!["timeout"]));
    assert_eq!(nack(server, &id, json!({"code": "e"})).await.expect(409).code(), "conflict");
    server.pass_ms(1_000).await;
    assert_eq!(fetch(server, json!({})).await[0]["attempt"], 2);
    server.pass_ms(2_000).await;
    assert_eq!(server.job(&id).await["state"], "discarded");
}

async fn a_worker_whose_beats_stop_loses_its_jobs(server: &OjsServer) {
    beat(server, json!({"worker_id": "w"})).await;
    let old = held(server, json!({})).await;
    server.pass_ms(20_000).await;
    let new = held(server, json!({})).await;
    server.pass_ms(9_999).await;
    assert_eq!(server.job(&old).await["state"], "active");
    server.pass_ms(1).await;
    assert_eq!(server.job(&old).await["state"], "available");
    assert_eq!(server.job(&new).await["state"], "active", "it was fetched since");
    server.pass_ms(19_999).await;
    assert_eq!(server.job(&new).await["state"], "active");
    server.pass_ms(1).await;
    assert_eq!(server.job(&new).await["state"], "available");
}

async fn a_worker_without_beats_keeps_its_jobs(server: &OjsServer) {
    beat(server, json!({"worker_id": "another"})).await;
    let id = held(server, json!({})).await;
    server.pass_ms(70_000).await;
    assert_eq!(server.job(&id).await["state"], "active");
}
