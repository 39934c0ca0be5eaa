//! The overlap policies: the earlier job of the entry has not ended.

use super::super::on_sqlite_first;
use super::{MINUTE, entry, every_minute, jobs, outcomes, states, to_the_minute};
use serde_json::json;
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_waiting_job_overlaps,
    overlapping_jobs_run_when_allowed,
    the_earlier_job_is_cancelled_when_configured,
    a_job_of_the_same_name_of_another_entry_does_not_count,
    jobs_of_an_entry_are_enqueued_in_order_when_configured,
];

async fn a_waiting_job_overlaps(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({})).await;
    server.pass_ms(MINUTE).await;
    server.pass_ms(MINUTE).await;
    assert_eq!(states(server).await, ["available"]);
    assert_eq!(outcomes(server, "n").await, ["skipped", "triggered"]);
    let first = jobs(server).await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        server.fleet.event_names(&first).await,
        ["job.enqueued", "cron.triggered", "cron.skipped"],
        "a skipped occurrence is an event"
    );
    assert_eq!(entry(server, "n").await["run_count"], 1);
    server.delete(&format!("/ojs/v1/jobs/{first}")).await.expect(200);
    server.pass_ms(MINUTE).await;
    assert_eq!(states(server).await, ["cancelled", "available"]);
}

async fn overlapping_jobs_run_when_allowed(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({"overlap_policy": "allow"})).await;
    for _ in 0..3 {
        server.pass_ms(MINUTE).await;
    }
    assert_eq!(states(server).await, ["available"; 3]);
}

async fn the_earlier_job_is_cancelled_when_configured(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({"overlap_policy": "cancel_previous"})).await;
    for _ in 0..3 {
        server.pass_ms(MINUTE).await;
    }
    assert_eq!(states(server).await, ["cancelled", "cancelled", "available"]);
    assert_eq!(outcomes(server, "n").await, ["triggered"; 3]);
}

async fn a_job_of_the_same_name_of_another_entry_does_not_count(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "a", json!({})).await;
    every_minute(server, "b", json!({})).await;
    server.pass_ms(MINUTE).await;
    assert_eq!(states(server).await, ["available"; 2]);
}

/// OJS cron §5: `enqueue` makes every job and lets one run at a time.
async fn jobs_of_an_entry_are_enqueued_in_order_when_configured(server: &OjsServer) {
    to_the_minute(server).await;
    every_minute(server, "n", json!({"overlap_policy": "enqueue"})).await;
    for _ in 0..3 {
        server.pass_ms(MINUTE).await;
    }
    assert_eq!(
        (states(server).await.as_slice(), outcomes(server, "n").await.as_slice()),
        (&["available"; 3].map(str::to_owned)[..], &["triggered"; 3].map(str::to_owned)[..])
    );
    let fetch = async || {
        let requested = json!({"queues": ["reports"], "count": 9, "worker_id": "w"});
        server.post("/ojs/v1/workers/fetch", &requested).await.expect(200).json()["jobs"]
            .as_array()
            .unwrap()
            .clone()
    };
    let mut order = Vec::new();
    for _ in 0..3 {
        let held = fetch().await;
        assert_eq!(held.len(), 1, "one at a time");
        assert!(fetch().await.is_empty());
        order.push(held[0]["meta"]["cron_scheduled_at"].as_str().unwrap().to_owned());
        server.post("/ojs/v1/workers/ack", &json!({"job_id": held[0]["id"]})).await.expect(200);
    }
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(states(server).await, ["completed"; 3]);
}
