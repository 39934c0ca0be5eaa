//! Operations on many jobs.

use super::super::on_sqlite_first;
use super::{dead, mortal};
use crate::conformance::jobs::{plain, request};
use serde_json::{Value, json};
use turnstone_domain::NewJob;
use turnstone_store::JobKind;
use turnstone_tests::OjsServer;

async fn bulk(server: &OjsServer, action: &str, body: Value) -> Value {
    server.post(&format!("/ojs/v1/admin/jobs/bulk/{action}"), &body).await.expect(200).json()
}

async fn nothing_happens_without_confirmation(server: &OjsServer) {
    let id = dead(server, "mail", "email.send").await;
    for action in ["retry", "cancel", "delete"] {
        let path = format!("/ojs/v1/admin/jobs/bulk/{action}");
        for body in [
            json!({}),
            json!({"confirm": false}),
            json!({"confirm": "true"}),
            json!({"confirm": 1}),
            json!({"filter": {}}),
        ] {
            assert_eq!(
                server.post(&path, &body).await.expect(400).code(),
                "invalid_request",
                "{action} {body}"
            );
        }
        assert_eq!(server.post_text(&path, "").await.expect(400).code(), "invalid_request");
        // An unknown word could have been a narrower filter.
        server.post(&path, &json!({"confirm": true, "filter": {"queues": "mail"}})).await.expect(400);
        let none = bulk(server, action, json!({"confirm": true, "filter": {"queue": "none"}})).await;
        assert_eq!(
            (&none["action"], &none["matched"], &none["succeeded"], &none["failed"], &none["errors"]),
            (&json!(action), &json!(0), &json!(0), &json!(0), &json!([]))
        );
    }
    assert_eq!(server.job(&id).await["state"], "discarded");
}

async fn each_operation_applies_to_jobs_in_its_states(server: &OjsServer) {
    let (waits, ended) =
        (server.push(&mortal("mail", "email.send")).await, dead(server, "mail", "email.send").await);
    let other = server.push(&mortal("video", "video.encode")).await;
    let of_mail = json!({"confirm": true, "filter": {"queue": "mail"}});
    let retried = bulk(server, "retry", of_mail.clone()).await;
    assert_eq!((&retried["matched"], &retried["ids"]), (&json!(1), &json!([ended])));
    let cancelled = bulk(server, "cancel", of_mail.clone()).await;
    assert_eq!((&cancelled["succeeded"], &cancelled["ids"]), (&json!(2), &json!([waits, ended])));
    let deleted = bulk(server, "delete", of_mail).await;
    assert_eq!((&deleted["action"], &deleted["succeeded"]), (&json!("delete"), &json!(2)));
    assert_eq!(server.stored_jobs().await, 1);
    assert_eq!(server.job(&other).await["state"], "available");
}

async fn impossible_operations_are_reported(server: &OjsServer) {
    let id = server.push(&mortal("mail", "email.send")).await;
    let now = server.fleet.now();
    let claims = server.fleet.store.ledger.claim(request(JobKind::Plain, 1, now)).await.unwrap();
    let waiting = server.push(&mortal("mail", "email.send")).await;
    let body = json!({"confirm": true, "filter": {"states": ["active", "available"]}});
    let reply = bulk(server, "delete", body).await;
    assert_eq!((&reply["matched"], &reply["succeeded"], &reply["failed"]), (&json!(2), &json!(1), &json!(1)));
    assert_eq!((&reply["errors"][0]["id"], &reply["errors"][0]["code"]), (&json!(id), &json!("conflict")));
    server.get(&format!("/ojs/v1/jobs/{waiting}")).await.expect(404);
    assert_eq!(server.job(&id).await["state"], "active");
    assert!(server.fleet.store.ledger.reads().lost(&[claims[0].lease.clone()]).await.unwrap().is_empty());
}

async fn thousands_of_jobs_are_changed_in_batches(server: &OjsServer) {
    const JOBS: usize = 3_000;
    let now = server.fleet.now();
    let jobs = |queue: &str, count: usize| -> Vec<NewJob> {
        (0..count).map(|_| NewJob { queue: queue.into(), created_at: now, run_at: now, ..plain(0) }).collect()
    };
    server.fleet.store.intake.push(jobs("many", JOBS)).await.unwrap();
    server.fleet.store.intake.push(jobs("few", 7)).await.unwrap();
    let of_many = json!({"queue": "many"});
    let looked = bulk(server, "cancel", json!({"filter": of_many, "dry_run": true})).await;
    assert_eq!(
        (&looked["matched"], &looked["succeeded"], &looked["remaining"]),
        (&json!(JOBS), &json!(0), &json!(0))
    );
    assert_eq!(looked["ids"].as_array().unwrap().len(), JOBS);
    let cancelled = bulk(server, "cancel", json!({"filter": of_many, "confirm": true})).await;
    assert_eq!((&cancelled["succeeded"], &cancelled["failed"]), (&json!(JOBS), &json!(0)));
    let left = server.fleet.number("SELECT count(*) FROM jobs WHERE state = 'available'").await;
    assert_eq!(left, 7);
    let reported = server.fleet.number(&turnstone_tests::journal::event_count("job.cancelled")).await;
    assert_eq!(reported, i64::try_from(JOBS).unwrap(), "each says so once");
    let deleted = bulk(server, "delete", json!({"filter": of_many, "confirm": true})).await;
    assert_eq!(deleted["succeeded"], JOBS);
    assert_eq!(server.stored_jobs().await, 7);
}

async fn a_queue_is_purged(server: &OjsServer) {
    let old = server.push(&mortal("mail", "email.send")).await;
    server.fleet.clock.advance_ms(3_600_000);
    let (young, ended) =
        (server.push(&mortal("mail", "email.send")).await, dead(server, "mail", "email.send").await);
    let path = "/ojs/v1/admin/queues/mail/jobs";
    server.delete(path).await.expect(400);
    for wrong in ["confirm=yes", "confirm=true&states=done", "confirm=true&older_than=long"] {
        server.delete(&format!("{path}?{wrong}")).await.expect(400);
    }
    let purged = server.delete(&format!("{path}?confirm=true")).await.expect(200).json();
    assert_eq!(
        (&purged["queue"], &purged["purged_count"]),
        (&json!("mail"), &json!(1)),
        "those that have ended"
    );
    server.get(&format!("/ojs/v1/jobs/{ended}")).await.expect(404);
    let query = "confirm=true&states=available,scheduled&older_than=PT30M";
    let purged = server.delete(&format!("{path}?{query}")).await.expect(200).json();
    assert_eq!(purged["purged_count"], 1);
    server.get(&format!("/ojs/v1/jobs/{old}")).await.expect(404);
    assert_eq!(server.job(&young).await["state"], "available");
}

on_sqlite_first![
    nothing_happens_without_confirmation,
    each_operation_applies_to_jobs_in_its_states,
    impossible_operations_are_reported,
    thousands_of_jobs_are_changed_in_batches,
    a_queue_is_purged,
];
