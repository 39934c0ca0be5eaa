//! Beats, directives, and the health of a worker (OJS worker protocol §4, OJS graceful shutdown).

use super::super::on_sqlite_first;
use super::{beat, held, push};
use serde_json::{Value, json};
use turnstone_store::Directive;
use turnstone_tests::OjsServer;

on_sqlite_first![
    only_jobs_that_the_worker_holds_are_renewed,
    every_spelling_of_a_beat_is_accepted,
    an_operators_directive_precedes_the_jobs,
    a_worker_is_listed_with_its_fields,
    health_follows_the_last_beat,
    the_name_of_an_agents_worker_is_refused,
    wrong_beats_are_refused,
];

async fn only_jobs_that_the_worker_holds_are_renewed(server: &OjsServer) {
    let mine = held(server, json!({})).await;
    let waiting = push(server, json!({})).await;
    let unknown = "0190a7b2-0000-7000-8000-000000000000";
    let reply = beat(server, json!({"worker_id": "w", "active_jobs": [waiting, mine, unknown, mine]})).await;
    assert_eq!(reply["jobs_extended"], json!([mine]));
    assert!(reply["server_time"].is_string());
    let reply = beat(server, json!({"worker_id": "other", "active_jobs": [mine]})).await;
    assert_eq!(reply["jobs_extended"], json!([]));
}

async fn every_spelling_of_a_beat_is_accepted(server: &OjsServer) {
    let id = held(server, json!({})).await;
    for (body, renewed) in [
        (json!({"worker_id": "w", "active_jobs": [id]}), json!([id])),
        (json!({"worker_id": "w", "active_jobs": 1, "active_job_ids": [id]}), json!([id])),
        (json!({"worker_id": "w", "job_id": id}), json!([id])),
        (json!({"worker_id": "w", "active_jobs": 1}), json!([])),
        (json!({"worker_id": "w"}), json!([])),
    ] {
        assert_eq!(beat(server, body.clone()).await["jobs_extended"], renewed, "{body}");
    }
}

async fn an_operators_directive_precedes_the_jobs(server: &OjsServer) {
    for word in ["quiet", "terminate", "dance"] {
        let job =
            json!({"type": "a.b", "args": [], "meta": {"test_directive": word}, "options": {"queue": word}});
        let id = server.push(&job).await;
        let body = json!({"queues": [word], "worker_id": "w"});
        server.post("/ojs/v1/workers/fetch", &body).await.expect(200);
        let reply = beat(server, json!({"worker_id": "w", "active_jobs": [id]})).await;
        let expected = if word == "dance" { "running" } else { word };
        assert_eq!((&reply["state"], &reply["directive"]), (&json!(expected), &json!(expected)));
        assert_eq!(beat(server, json!({"worker_id": "w"})).await["state"], "running");
        let remote = &server.fleet.store.remote;
        assert!(remote.direct("w", Some(Directive::Terminate)).await.unwrap());
        let reply = beat(server, json!({"worker_id": "w", "active_jobs": [id]})).await;
        assert_eq!(reply["state"], "terminate");
        assert!(remote.direct("w", None).await.unwrap());
    }
    assert!(!server.fleet.store.remote.direct("nobody", None).await.unwrap());
}

async fn a_worker_is_listed_with_its_fields(server: &OjsServer) {
    beat(server, json!({"worker_id": "w", "active_jobs": 3})).await;
    beat(server, json!({"worker_id": "w", "state": "quiet"})).await;
    let workers = server.get("/workers").await.expect(200).json();
    let worker: &Value = &workers[0];
    assert_eq!((&worker["name"], &worker["kind"]), (&json!("w"), &json!("http")));
    assert_eq!((&worker["busy"], &worker["state"]), (&json!(3), &json!("draining")));
    assert_eq!(worker["alive"], true);
}

async fn health_follows_the_last_beat(server: &OjsServer) {
    let path = "/ojs/v1/workers/w/health";
    assert_eq!(server.get(path).await.expect(404).code(), "not_found");
    beat(server, json!({"worker_id": "w"})).await;
    let health = server.get(path).await.expect(200).json();
    assert_eq!((&health["state"], &health["status"]), (&json!("running"), &json!("ok")));
    let said = json!({"worker_id": "w", "state": "drain", "active_jobs": 2});
    server.post("/ojs/v1/workers/beat", &said).await.expect(200);
    let health = server.get(path).await.expect(200).json();
    assert_eq!((&health["state"], &health["status"]), (&json!("draining"), &json!("degraded")));
    assert_eq!((&health["worker_id"], &health["active_jobs"]), (&json!("w"), &json!(2)));
    server.fleet.clock.advance_ms(30_000);
    assert_eq!(server.get(path).await.expect(200).json()["state"], "silent");
}

async fn the_name_of_an_agents_worker_is_refused(server: &OjsServer) {
    let ours = "INSERT INTO workers (name, instance, host, pid, version, queues, slots, busy, state, started_at, seen_at) \
                VALUES ('w', 'i', 'h', 1, '1', '[]', 1, 0, 'running', 0, 0) RETURNING slots";
    server.fleet.number(ours).await;
    let reply = server.post("/ojs/v1/workers/heartbeat", &json!({"worker_id": "w"})).await.expect(409);
    assert_eq!(reply.code(), "conflict");
    assert_eq!(server.fleet.number("SELECT seen_at FROM workers").await, 0);
}

async fn wrong_beats_are_refused(server: &OjsServer) {
    for (body, field) in [
        (json!({}), "worker_id"),
        (json!({"worker_id": ""}), "worker_id"),
        (json!({"worker_id": "w", "active_jobs": "all"}), "active_jobs"),
        (json!({"worker_id": "w", "active_jobs": -1}), "active_jobs"),
        (json!({"worker_id": "w", "state": "asleep"}), "state"),
        (json!({"worker_id": "x".repeat(256)}), "worker_id"),
    ] {
        for path in ["heartbeat", "beat"] {
            let reply = server.post(&format!("/ojs/v1/workers/{path}"), &body).await.expect(400);
            assert_eq!(reply.json()["error"]["details"]["field"], field, "{body}");
        }
    }
    assert_eq!(server.fleet.number("SELECT count(*) FROM workers").await, 0);
}
