//! The progress of a job (OJS progress).

use super::super::on_sqlite_first;
use super::{ack, fetch, held, nack, push, retry};
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    progress_is_written_and_read,
    progress_is_cut_and_never_goes_back_within_an_attempt,
    progress_renews_the_reservation,
    only_an_active_job_moves,
    a_completed_job_has_full_progress,
    progress_may_carry_a_state,
    wrong_progress_is_refused,
];

fn path(id: &str) -> String {
    format!("/ojs/v1/jobs/{id}/progress")
}

async fn report(server: &OjsServer, id: &str, body: Value) -> Value {
    server.put(&path(id), &body).await.expect(200).json()
}

async fn progress_is_written_and_read(server: &OjsServer) {
    let id = held(server, json!({})).await;
    let nothing = server.get(&path(&id)).await.expect(200).json();
    assert_eq!((&nothing["progress"], &nothing["state"]), (&json!(null), &json!("active")));
    let said = json!({"progress": 0.75, "message": "three of four", "data": {"n": 3}});
    let reply = report(server, &id, said.clone()).await;
    for key in ["progress", "message", "data"] {
        assert_eq!(reply[key], said[key], "{key}");
    }
    assert!(reply["updated_at"].is_string());
    assert_eq!(server.get(&path(&id)).await.expect(200).json(), reply);
}

async fn progress_is_cut_and_never_goes_back_within_an_attempt(server: &OjsServer) {
    let id = held(server, retry(3)).await;
    for (said, shown) in [(-1.0, 0.0), (0.5, 0.5), (0.25, 0.5), (1.5, 1.0)] {
        assert_eq!(report(server, &id, json!({"progress": said})).await["progress"], shown, "{said}");
    }
    nack(server, &id, json!({"code": "e"})).await.expect(200);
    server.pass_ms(1_000).await;
    fetch(server, json!({})).await;
    assert_eq!(report(server, &id, json!({"progress": 0.1})).await["progress"], 0.1);
}

async fn progress_renews_the_reservation(server: &OjsServer) {
    let id = push(server, json!({})).await;
    fetch(server, json!({"visibility_timeout_ms": 3000})).await;
    server.pass_ms(2_000).await;
    report(server, &id, json!({"progress": 0.1})).await;
    server.pass_ms(2_999).await;
    assert_eq!(server.job(&id).await["state"], "active");
    server.pass_ms(1).await;
    assert_eq!(server.job(&id).await["state"], "available");
}

async fn only_an_active_job_moves(server: &OjsServer) {
    let id = push(server, json!({})).await;
    let reply = report(server, &id, json!({"progress": 0.5})).await;
    assert_eq!((&reply["progress"], &reply["state"]), (&json!(null), &json!("available")));
}

async fn a_completed_job_has_full_progress(server: &OjsServer) {
    let (told_before, silent) = (held(server, json!({})).await, held(server, json!({})).await);
    report(server, &told_before, json!({"progress": 0.5, "message": "half"})).await;
    for id in [&told_before, &silent] {
        ack(server, id).await.expect(200);
        let reply = server.get(&path(id)).await.expect(200).json();
        assert_eq!((&reply["progress"], &reply["state"]), (&json!(1.0), &json!("completed")));
    }
}

async fn progress_may_carry_a_state(server: &OjsServer) {
    let id = held(server, json!({})).await;
    report(server, &id, json!({"progress": 0.5, "checkpoint": {"page": 5}})).await;
    let saved = server.get(&format!("/ojs/v1/jobs/{id}/checkpoint")).await.expect(200).json();
    assert_eq!((&saved["state"], &saved["sequence"]), (&json!({"page": 5}), &json!(1)));
}

async fn wrong_progress_is_refused(server: &OjsServer) {
    let id = held(server, json!({})).await;
    for body in [
        json!({}),
        json!({"progress": "half"}),
        json!({"progress": null}),
        json!({"progress": 1, "message": 5}),
    ] {
        assert_eq!(server.put(&path(&id), &body).await.expect(400).code(), "invalid_request", "{body}");
    }
    let unknown = path("0190a7b2-0000-7000-8000-000000000000");
    server.put(&unknown, &json!({"progress": 1})).await.expect(404);
    server.get(&unknown).await.expect(404);
}
