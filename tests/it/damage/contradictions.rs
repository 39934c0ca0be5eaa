//! Rows that are well-formed and wrong: the database refuses them, or they are damage when they are read.

use super::doctor::inspected;
use crate::stores::on_stores;
use serde_json::json;
use turnstone_tests::{Backend, OjsServer};

on_stores!(
    everywhere: [
        a_state_outside_the_table_is_refused_or_damage,
        a_lease_without_a_token_is_refused,
        a_negative_budget_is_refused,
        an_end_without_its_time_is_refused_or_damage,
    ],
    sqlite_first: [],
);

async fn with_job(backend: Backend) -> (OjsServer, String) {
    let server = OjsServer::start(backend).await;
    let id = server.push(&json!({"type": "mail.send", "args": [1], "options": {"queue": "q"}})).await;
    (server, id)
}

/// SQLite refuses the state. On PostgreSQL the job is shown as damaged, and the others are fetched.
async fn a_state_outside_the_table_is_refused_or_damage(backend: Backend) {
    let (server, id) = with_job(backend).await;
    let other = server.push(&json!({"type": "mail.send", "args": [2], "options": {"queue": "q"}})).await;
    let place = &server.fleet.place;
    let changed = place.try_change(&format!("UPDATE jobs SET state = 'asleep' WHERE id = '{id}'")).await;
    assert_eq!(changed.is_ok(), backend == Backend::Postgres);
    if changed.is_err() {
        server.end().await;
        return;
    }
    let job = server.job(&id).await;
    assert!(job["damaged"].as_str().unwrap().contains("column state of jobs"), "{job:#}");
    let list = server.get("/ojs/v1/jobs?queue=q").await.expect(200).json();
    assert_eq!(list["jobs"].as_array().unwrap().len(), 2, "{list:#}");
    let fetch = json!({"queues": ["q"], "count": 5, "worker_id": "w"});
    let fetched = server.post("/ojs/v1/workers/fetch", &fetch).await.expect(200).json();
    assert_eq!(fetched["jobs"][0]["id"], other, "{fetched:#}");
    let found = inspected(place).await;
    assert_eq!(
        (&found[0]["table"], &found[0]["column"], &found[0]["id"]),
        (&json!("jobs"), &json!("state"), &json!(id))
    );
    server.end().await;
}

async fn a_lease_without_a_token_is_refused(backend: Backend) {
    let (server, id) = with_job(backend).await;
    let place = &server.fleet.place;
    let active = format!("UPDATE jobs SET state = 'active' WHERE id = '{id}'");
    assert!(place.try_change(&active).await.is_err(), "an active job has a lease");
    let fetch = json!({"queues": ["q"], "count": 5, "worker_id": "w"});
    server.post("/ojs/v1/workers/fetch", &fetch).await.expect(200);
    let tokenless = format!("UPDATE jobs SET lease_token = NULL WHERE id = '{id}'");
    assert!(place.try_change(&tokenless).await.is_err(), "a lease has a token");
    let left = format!("UPDATE jobs SET state = 'available' WHERE id = '{id}'");
    assert!(place.try_change(&left).await.is_err(), "a lease ends with its state");
    server.post(&format!("/ojs/v1/jobs/{id}/ack"), &json!({})).await.expect(200);
    server.end().await;
}

async fn a_negative_budget_is_refused(backend: Backend) {
    let server = OjsServer::start(backend).await;
    server.push(&json!({"type": "agent.ask", "args": ["hi"], "ext_agent_model": "m", "ext_agent_token_budget": 9})).await;
    let place = &server.fleet.place;
    for wrong in ["settled = -1", "reserved = -1", "money_settled = -1", "money_reserved = -1"] {
        let changed = place.try_change(&format!("UPDATE totals SET {wrong}")).await;
        assert!(changed.is_err(), "{wrong} is taken");
    }
    assert!(
        place.try_change("UPDATE totals SET settled = 10").await.is_ok(),
        "an answer used more than was left"
    );
    assert!(
        place.try_change("UPDATE jobs SET reserved = 1").await.is_err(),
        "only a leased job has a reservation"
    );
    server.end().await;
}

/// SQLite refuses the row. On PostgreSQL a claim makes a dead letter of it.
async fn an_end_without_its_time_is_refused_or_damage(backend: Backend) {
    let (server, id) = with_job(backend).await;
    let other = server.push(&json!({"type": "mail.send", "args": [2], "options": {"queue": "q"}})).await;
    let place = &server.fleet.place;
    let changed =
        place.try_change(&format!("UPDATE jobs SET ended_at = 5, failures = -1 WHERE id = '{id}'")).await;
    assert_eq!(changed.is_ok(), backend == Backend::Postgres);
    if changed.is_err() {
        server.end().await;
        return;
    }
    let fetch = json!({"queues": ["q"], "count": 5, "worker_id": "w"});
    let mut fetched = Vec::new();
    for _ in 0..2 {
        let got = server.post("/ojs/v1/workers/fetch", &fetch).await.expect(200).json();
        fetched.extend(got["jobs"].as_array().unwrap().iter().map(|job| job["id"].clone()));
    }
    assert_eq!(fetched, [json!(other)]);
    let job = server.job(&id).await;
    assert_eq!(job["state"], "discarded", "{job:#}");
    assert!(job.to_string().contains("JOB_UNREADABLE"), "{job:#}");
    server.end().await;
}
