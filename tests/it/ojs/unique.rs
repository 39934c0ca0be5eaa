//! Unique jobs over HTTP: the compared fields, and the client's answer.

use super::on_sqlite_first;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_refused_job_names_the_one_that_exists,
    the_keys_select_the_compared_fields,
    an_ignored_duplicate_returns_the_existing_job,
    a_replaced_job_is_cancelled_and_may_lend_its_schedule,
    after_the_period_another_one_is_taken,
];

fn job(args: Value, unique: Value) -> Value {
    json!({"type": "report.make", "args": args, "options": {"queue": "reports", "unique": unique}})
}

async fn a_refused_job_names_the_one_that_exists(server: &OjsServer) {
    let sent = job(json!([1]), json!({"keys": ["type"]}));
    let first = server.push(&sent).await;
    let refused = server.post("/ojs/v1/jobs", &sent).await.expect(409).json();
    assert_eq!(refused["error"]["code"], "duplicate");
    assert_eq!(refused["error"]["details"]["existing_job_id"], first.as_str());
    assert_eq!(refused["error"]["retryable"], false);
    assert_eq!(server.stored_jobs().await, 1);
}

async fn the_keys_select_the_compared_fields(server: &OjsServer) {
    let by_args = |args: Value| job(args, json!({"keys": ["type", "args"]}));
    server.push(&by_args(json!([{"a": 1, "b": 2}]))).await;
    server.push(&by_args(json!([{"a": 1, "b": 3}]))).await;
    server.post("/ojs/v1/jobs", &by_args(json!([{"b": 2, "a": 1}]))).await.expect(409);
    let by_part =
        |b: i64| job(json!([{"a": 9, "b": b}]), json!({"keys": ["type", "args"], "args_keys": ["a"]}));
    server.push(&by_part(1)).await;
    server.post("/ojs/v1/jobs", &by_part(2)).await.expect(409);
}

async fn an_ignored_duplicate_returns_the_existing_job(server: &OjsServer) {
    let sent = job(json!([1]), json!({"keys": ["type"], "on_conflict": "ignore"}));
    let first = server.push(&sent).await;
    let reply = server.post("/ojs/v1/jobs", &sent).await.expect(200).json();
    assert_eq!(
        (&reply["job"]["id"], &reply["id"], &reply["deduplicated"]),
        (&json!(first), &json!(first), &json!(true))
    );
}

async fn a_replaced_job_is_cancelled_and_may_lend_its_schedule(server: &OjsServer) {
    let later = "2099-01-01T00:00:00Z";
    let mut first = job(json!([1]), json!({"keys": ["type"]}));
    first["options"]["scheduled_at"] = later.into();
    let first = server.push(&first).await;
    let second = job(json!([2]), json!({"keys": ["type"], "on_conflict": "replace_except_schedule"}));
    let second = server.post("/ojs/v1/jobs", &second).await.expect(201).json();
    assert_eq!(
        (&second["state"], &server.job(&first).await["state"]),
        (&json!("scheduled"), &json!("cancelled"))
    );
    let third = job(json!([3]), json!({"keys": ["type"], "on_conflict": "replace"}));
    let third = server.post("/ojs/v1/jobs", &third).await.expect(201).json();
    assert_eq!(third["state"], "available");
    assert_eq!(server.job(second["id"].as_str().unwrap()).await["state"], "cancelled");
}

async fn after_the_period_another_one_is_taken(server: &OjsServer) {
    let sent = job(json!([1]), json!({"keys": ["type"], "period": "PT2S"}));
    server.push(&sent).await;
    server.pass_ms(1_999).await;
    server.post("/ojs/v1/jobs", &sent).await.expect(409);
    server.pass_ms(1).await;
    server.push(&sent).await;
}
