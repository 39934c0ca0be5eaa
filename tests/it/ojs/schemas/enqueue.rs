//! Jobs whose arguments do not match their schema.

use super::super::on_sqlite_first;
use super::register;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    arguments_are_validated_only_when_configured,
    an_enforced_schema_refuses_with_the_field,
    a_warning_schema_accepts_and_warns,
    the_version_that_a_job_names_applies,
    a_mode_is_changed_at_once,
    another_processs_schema_applies_soon,
    a_rule_refuses_invalid_arguments_of_a_job,
];

fn job(args: &Value) -> Value {
    json!({"type": "mail.send", "args": args})
}

async fn two_texts(server: &OjsServer, version: i64, mode: &str) {
    let schema = json!({"type": "array", "minItems": 2, "items": {"type": "string"}});
    register(server, "mail.send", version, &json!({"schema": schema, "mode": mode})).await.expect(201);
}

async fn arguments_are_validated_only_when_configured(server: &OjsServer) {
    two_texts(server, 1, "off").await;
    server.push(&job(&json!([1]))).await;
}

async fn an_enforced_schema_refuses_with_the_field(server: &OjsServer) {
    two_texts(server, 1, "enforce").await;
    server.push(&job(&json!(["a", "b"]))).await;
    let error = server.post("/ojs/v1/jobs", &job(&json!(["a", 7]))).await.expect(400).json()["error"].clone();
    assert_eq!(
        (&error["code"], &error["details"]["schema_version"]),
        (&json!("schema_validation"), &json!(1))
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("/1") && message.contains("string"), "{message}");
    let big = r#"{"type":"mail.send","args":["a",1e400]}"#;
    assert_eq!(server.post_text("/ojs/v1/jobs", big).await.expect(400).code(), "schema_validation");
    server.push(&json!({"type": "mail.other", "args": [1]})).await;
    assert_eq!(server.stored_jobs().await, 2);
}

async fn a_warning_schema_accepts_and_warns(server: &OjsServer) {
    two_texts(server, 1, "warn").await;
    let reported = server.post("/ojs/v1/jobs", &job(&json!(["a"]))).await.expect(201).json();
    assert!(reported["warnings"][0].as_str().unwrap().contains("version 1"), "{reported:#}");
    let fits = server.post("/ojs/v1/jobs", &job(&json!(["a", "b"]))).await.expect(201).json();
    assert_eq!(fits.get("warnings"), None);
}

async fn the_version_that_a_job_names_applies(server: &OjsServer) {
    two_texts(server, 1, "enforce").await;
    let any = json!({"schema": {"type": "array"}, "mode": "enforce"});
    register(server, "mail.send", 2, &any).await.expect(201);
    server.push(&job(&json!([]))).await;
    let old = json!({"type": "mail.send", "args": [], "version": 1});
    server.post("/ojs/v1/jobs", &old).await.expect(400);
    let unknown = json!({"type": "mail.send", "args": [], "version": 3});
    let id = server.push(&unknown).await;
    assert_eq!(server.job(&id).await["version"], 3);
}

async fn a_mode_is_changed_at_once(server: &OjsServer) {
    two_texts(server, 1, "off").await;
    server.push(&job(&json!([]))).await;
    let changed = server.patch("/ojs/v1/admin/schemas/mail.send/1", &json!({"mode": "enforce"})).await;
    assert_eq!(changed.expect(200).json()["mode"], "enforce");
    server.post("/ojs/v1/jobs", &job(&json!([]))).await.expect(400);
    let all =
        server.patch("/ojs/v1/admin/schemas/mail.send", &json!({"mode": "off"})).await.expect(200).json();
    assert_eq!(all["versions"][0]["mode"], "off");
    server.push(&job(&json!([]))).await;
    server.patch("/ojs/v1/admin/schemas/mail.send", &json!({"mode": "on"})).await.expect(400);
    server.patch("/ojs/v1/admin/schemas/mail.send", &json!({})).await.expect(400);
}

async fn another_processs_schema_applies_soon(server: &OjsServer) {
    two_texts(server, 1, "off").await;
    server.push(&job(&json!([]))).await;
    let schemas = &server.fleet.store.schemas;
    schemas.set_mode("mail.send", None, turnstone_domain::schema::Mode::Enforce).await.unwrap();
    server.fleet.clock.advance_ms(2_000);
    server.post("/ojs/v1/jobs", &job(&json!([]))).await.expect(400);
}

async fn a_rule_refuses_invalid_arguments_of_a_job(server: &OjsServer) {
    let requested = |args: Value, validate: Value| json!({"type": "a.b", "args": args, "meta": {"ojs_validate": validate}});
    let refused = server.post("/ojs/v1/jobs", &requested(json!([]), json!(true))).await.expect(422);
    assert_eq!(refused.code(), "validation_error");
    assert_eq!(server.stored_jobs().await, 0);
    for fine in [
        requested(json!([1]), json!(true)),
        requested(json!([]), json!(false)),
        requested(json!([]), json!("yes")),
    ] {
        server.push(&fine).await;
    }
}
