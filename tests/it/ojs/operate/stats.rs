//! The statistics of the server.

use super::super::on_sqlite_first;
use super::{dead, end};
use crate::conformance::jobs::complete;
use serde_json::json;
use turnstone_tests::OjsServer;

async fn jobs_and_their_pace_are_counted(server: &OjsServer) {
    let stats = server.get("/ojs/v1/admin/stats").await.expect(200).json();
    assert!(stats["queues"].is_u64() && stats["workers"].is_u64(), "{stats}");
    assert_eq!(stats["throughput"], json!({"processed_per_minute": 0, "failed_per_minute": 0}));
    dead(server, "mail", "email.send").await;
    let id = server.push(&json!({"type": "a.b", "args": []})).await;
    end(server, &id, complete()).await;
    server.push(&json!({"type": "a.b", "args": []})).await;
    let stats = server.get("/ojs/v1/admin/stats").await.expect(200).json();
    assert_eq!(
        stats["jobs"],
        json!({"scheduled": 0, "available": 1, "pending": 0, "active": 0, "completed": 1, "retryable": 0,
               "cancelled": 0, "discarded": 1})
    );
    assert_eq!(stats["throughput"], json!({"processed_per_minute": 2, "failed_per_minute": 1}));
    server.fleet.clock.advance_ms(61_000);
    let later = server.get("/ojs/v1/admin/stats").await.expect(200).json();
    assert_eq!(later["throughput"], json!({"processed_per_minute": 0, "failed_per_minute": 0}));
    assert_eq!(later["jobs"], stats["jobs"]);
}

async fn hours_are_kept(server: &OjsServer) {
    dead(server, "mail", "email.send").await;
    let id = server.push(&json!({"type": "a.b", "args": []})).await;
    end(server, &id, complete()).await;
    server.pass_ms(3_600_000).await;
    let history = server.get("/ojs/v1/admin/stats/history").await.expect(200).json();
    let hours = history["items"].as_array().unwrap();
    assert_eq!(hours.len(), 1, "{history}");
    assert_eq!(
        (&hours[0]["processed"], &hours[0]["failed"], &hours[0]["completed"]),
        (&json!(2), &json!(1), &json!(1))
    );
    let of_mail = server.get("/ojs/v1/admin/stats/history?queue=mail").await.expect(200).json();
    assert_eq!((&of_mail["items"][0]["processed"], &of_mail["items"][0]["failed"]), (&json!(1), &json!(1)));
    server.get("/ojs/v1/admin/stats/history?hours=0").await.expect(400);
}

on_sqlite_first![jobs_and_their_pace_are_counted, hours_are_kept];
