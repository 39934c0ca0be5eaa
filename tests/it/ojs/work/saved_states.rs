//! The state that a worker saves for the next attempt (OJS durable execution).

use super::super::on_sqlite_first;
use super::{ack, fetch, held, nack, push, retry};
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_state_is_replaced_and_counted,
    a_state_is_kept_as_it_was_sent,
    a_state_survives_attempts_and_the_end_of_the_job,
    a_deleted_state_begins_again,
    an_ended_job_keeps_its_state,
    jobs_do_not_see_the_states_of_others,
    an_invalid_state_is_refused,
    states_are_deleted_with_their_job,
];

fn path(id: &str) -> String {
    format!("/ojs/v1/jobs/{id}/checkpoint")
}

async fn save(server: &OjsServer, id: &str, state: Value) -> Value {
    server.put(&path(id), &json!({"state": state})).await.expect(200).json()
}

async fn a_state_is_replaced_and_counted(server: &OjsServer) {
    let id = push(server, json!({})).await;
    assert_eq!(server.get(&path(&id)).await.expect(404).code(), "not_found");
    for (n, state) in [json!({"page": 1, "more": true}), json!({}), json!([3])].into_iter().enumerate() {
        let saved = save(server, &id, state.clone()).await;
        assert_eq!((&saved["job_id"], &saved["state"]), (&json!(id), &state));
        assert_eq!(saved["sequence"], n + 1);
        assert_eq!(server.get(&path(&id)).await.expect(200).json(), saved);
        assert_eq!(
            (&saved["checkpoint"]["state"], &saved["checkpoint"]["sequence"]),
            (&state, &saved["sequence"])
        );
    }
    let posted = server.post(&path(&id), &json!({"state": 4})).await.expect(200).json();
    assert_eq!(posted["sequence"], 4);
}

async fn a_state_is_kept_as_it_was_sent(server: &OjsServer) {
    let id = push(server, json!({})).await;
    for state in ["1e400", "{\"z\":0.1,\"a\":[1.0]}", "null", "\"x\""] {
        let body = format!("{{\"state\":{state}}}");
        let reply = server.send(reqwest::Method::PUT, &path(&id), &[], body).await.expect(200);
        assert!(reply.text.contains(&format!("\"state\":{state}")), "{}", reply.text);
        assert_eq!(server.get(&path(&id)).await.expect(200).text, reply.text);
    }
}

async fn a_state_survives_attempts_and_the_end_of_the_job(server: &OjsServer) {
    let id = held(server, retry(5)).await;
    save(server, &id, json!({"percent": 25})).await;
    nack(server, &id, json!({"code": "e"})).await.expect(200);
    server.pass_ms(1_000).await;
    let again = fetch(server, json!({})).await.remove(0);
    assert_eq!(
        (&again["checkpoint"]["state"], &again["checkpoint"]["sequence"]),
        (&json!({"percent": 25}), &json!(1))
    );
    save(server, &id, json!({"percent": 75})).await;
    ack(server, &id).await.expect(200);
    let kept = server.get(&path(&id)).await.expect(200).json();
    assert_eq!((&kept["state"], &kept["sequence"]), (&json!({"percent": 75}), &json!(2)));
}

async fn a_deleted_state_begins_again(server: &OjsServer) {
    let id = push(server, json!({})).await;
    save(server, &id, json!(1)).await;
    save(server, &id, json!(2)).await;
    for _ in 0..2 {
        assert_eq!(server.delete(&path(&id)).await.expect(200).json()["deleted"], true);
        server.get(&path(&id)).await.expect(404);
    }
    assert_eq!(save(server, &id, json!(3)).await["sequence"], 1);
}

async fn an_ended_job_keeps_its_state(server: &OjsServer) {
    let done = held(server, json!({})).await;
    save(server, &done, json!("last words")).await;
    ack(server, &done).await.expect(200);
    let cancelled = push(server, json!({})).await;
    server.delete(&format!("/ojs/v1/jobs/{cancelled}")).await.expect(200);
    let lost = push(server, retry(1)).await;
    fetch(server, json!({})).await;
    nack(server, &lost, json!({"code": "e"})).await.expect(200);
    for id in [&done, &cancelled, &lost] {
        assert_eq!(server.put(&path(id), &json!({"state": 1})).await.expect(409).code(), "conflict");
    }
    assert_eq!(server.get(&path(&done)).await.expect(200).json()["state"], "last words");
}

async fn jobs_do_not_see_the_states_of_others(server: &OjsServer) {
    let (one, two) = (push(server, json!({})).await, push(server, json!({})).await);
    save(server, &one, json!(1)).await;
    assert_eq!(save(server, &two, json!(2)).await["sequence"], 1);
    server.delete(&path(&one)).await.expect(200);
    assert_eq!(server.get(&path(&two)).await.expect(200).json()["state"], 2);
}

async fn an_invalid_state_is_refused(server: &OjsServer) {
    let unknown = path("0190a7b2-0000-7000-8000-000000000000");
    server.put(&unknown, &json!({"state": 1})).await.expect(404);
    server.get(&unknown).await.expect(404);
    server.delete(&unknown).await.expect(404);
    let id = push(server, json!({})).await;
    assert_eq!(server.put(&path(&id), &json!({"sate": 1})).await.expect(400).code(), "invalid_request");
    let large = json!({"state": "x".repeat(1024 * 1024)});
    server.put(&path(&id), &large).await.expect(413);
    server.get(&path(&id)).await.expect(404);
}

async fn states_are_deleted_with_their_job(server: &OjsServer) {
    let id = held(server, json!({})).await;
    save(server, &id, json!(1)).await;
    server.put(&format!("/ojs/v1/jobs/{id}/progress"), &json!({"progress": 0.5})).await.expect(200);
    ack(server, &id).await.expect(200);
    let kept = "SELECT (SELECT count(*) FROM saved_states) + (SELECT count(*) FROM progress)";
    assert_eq!(server.fleet.number(kept).await, 2);
    server.pass_ms(10_000_000).await;
    let (store, now) = (&server.fleet.store, server.fleet.now());
    let term = store.upkeep.lead("test", 60_000, now.plus_ms(100_000_000)).await.unwrap().unwrap();
    for duty in
        [turnstone_store::Duty::FoldStatistics { until: now }, turnstone_store::Duty::Prune { before: now }]
    {
        store.upkeep.perform(duty, &term, now, 100).await.unwrap();
    }
    assert_eq!(server.stored_jobs().await, 0);
    assert_eq!(server.fleet.number(kept).await, 0);
}
