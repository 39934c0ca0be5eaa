//! The list of workers, and the directives that they receive.

use super::super::on_sqlite_first;
use serde_json::{Value, json};
use turnstone_store::{Directive, WorkerBeat, WorkerKind, WorkerState};
use turnstone_tests::OjsServer;

async fn beat(server: &OjsServer, worker: &str) -> Value {
    let body = json!({"worker_id": worker, "active_jobs": []});
    server.post("/ojs/v1/workers/heartbeat", &body).await.expect(200).json()
}

async fn workers(server: &OjsServer) -> Value {
    server.get("/ojs/v1/admin/workers").await.expect(200).json()
}

async fn they_are_listed_and_counted(server: &OjsServer) {
    let none = workers(server).await;
    assert_eq!(
        (&none["items"], &none["pagination"]),
        (&json!([]), &json!({"total": 0, "page": 1, "per_page": 20}))
    );
    assert_eq!(none["summary"], json!({"total": 0, "running": 0, "quiet": 0, "stale": 0}));
    beat(server, "silent").await;
    server.fleet.clock.advance_ms(60_000);
    beat(server, "b").await;
    beat(server, "a").await;
    server.send(reqwest::Method::POST, "/ojs/v1/admin/workers/b/quiet", &[], "").await.expect(200);
    let list = workers(server).await;
    let states: Vec<(&str, &str)> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["id"].as_str().unwrap(), item["state"].as_str().unwrap()))
        .collect();
    assert_eq!(states, [("a", "running"), ("b", "quiet"), ("silent", "stale")]);
    assert_eq!(list["summary"], json!({"total": 3, "running": 1, "quiet": 1, "stale": 1}));
    let part = server.get("/ojs/v1/admin/workers?page=2&per_page=2").await.expect(200).json();
    assert_eq!((&part["items"][0]["id"], &part["pagination"]["total"]), (&json!("silent"), &json!(3)));
}

async fn workers_receive_directives_with_their_next_beat(server: &OjsServer) {
    assert_eq!(beat(server, "w").await["state"], "running");
    let reported = server.post("/ojs/v1/admin/workers/w/quiet", &json!({})).await.expect(200).json();
    assert_eq!((&reported["id"], &reported["directive"]), (&json!("w"), &json!("quiet")));
    assert_eq!(beat(server, "w").await["state"], "quiet");
    server.delete("/ojs/v1/admin/workers/w").await.expect(200);
    assert_eq!(beat(server, "w").await["state"], "terminate");
    server.delete("/ojs/v1/admin/workers/nobody").await.expect(404);
}

async fn agents_workers_receive_a_directive_to_drain(server: &OjsServer) {
    let now = server.fleet.now();
    let own = WorkerBeat {
        name: "own".into(),
        instance: "1".into(),
        host: "here".into(),
        pid: 7,
        version: "1".into(),
        queues: vec!["*".into()],
        slots: 4,
        busy: 1,
        state: WorkerState::Running,
        started_at: now,
        seen_at: now,
        kind: WorkerKind::Own,
        directive: None,
    };
    let beats = async |own: &WorkerBeat| {
        server.fleet.store.ledger.beat(own.clone(), WorkerBeat::SILENT_MS).await.unwrap()
    };
    assert_eq!(beats(&own).await, None);
    let quiet = server.post("/ojs/v1/admin/workers/own/quiet", &json!({})).await.expect(409);
    assert!(quiet.code() == "conflict" && quiet.text.contains("turnstone worker drain"), "{}", quiet.text);
    assert_eq!(beats(&own).await, None);
    server.delete("/ojs/v1/admin/workers/own").await.expect(200);
    assert_eq!(beats(&own).await, Some(Directive::Terminate));
    let listed = workers(server).await;
    assert_eq!(
        (&listed["items"][0]["active_jobs"], &listed["items"][0]["state"]),
        (&json!(1), &json!("terminate"))
    );
    server.fleet.clock.advance_ms(60_000);
    let successor = WorkerBeat { instance: "2".into(), seen_at: server.fleet.now(), ..own };
    assert_eq!(beats(&successor).await, None, "a directive is for one instance");
}

on_sqlite_first![
    they_are_listed_and_counted,
    workers_receive_directives_with_their_next_beat,
    agents_workers_receive_a_directive_to_drain,
];
