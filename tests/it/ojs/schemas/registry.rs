//! Versions are registered once, read, and removed.

use super::super::on_sqlite_first;
use super::register;
use serde_json::json;
use turnstone_tests::OjsServer;

on_sqlite_first![
    versions_are_registered_and_the_latest_is_shown,
    a_version_is_registered_once,
    an_invalid_schema_is_refused,
    a_schema_of_draft_seven_is_accepted,
    an_unknown_schema_is_not_found,
];

async fn versions_are_registered_and_the_latest_is_shown(server: &OjsServer) {
    let text = r#"{"schema":{"type":"array","minItems":1,"x-note":1.50}}"#;
    let path = "/ojs/v1/admin/schemas/mail.send/1";
    let made = server.send(reqwest::Method::PUT, path, &[], text).await.expect(201);
    assert!(made.text.contains(r#""schema":{"type":"array","minItems":1,"x-note":1.50}"#), "{}", made.text);
    let made = made.json();
    assert_eq!(
        (&made["type"], &made["version"], &made["mode"]),
        (&json!("mail.send"), &json!(1), &json!("off"))
    );
    for version in [10, 2] {
        register(server, "mail.send", version, &json!({"schema": {"minItems": version}})).await.expect(201);
    }
    let latest = server.get("/ojs/v1/admin/schemas/mail.send").await.expect(200).json();
    assert_eq!((&latest["version"], &latest["schema"]), (&json!(10), &json!({"minItems": 10})));
    let versions = server.get("/ojs/v1/admin/schemas/mail.send/versions").await.expect(200).json();
    let numbers: Vec<_> =
        versions["versions"].as_array().unwrap().iter().map(|one| &one["version"]).collect();
    assert_eq!(numbers, [10, 2, 1]);
    assert_eq!(server.get("/ojs/v1/admin/schemas").await.expect(200).json()["count"], 3);
    server.delete("/ojs/v1/admin/schemas/mail.send/10").await.expect(200);
    assert_eq!(server.get("/ojs/v1/admin/schemas/mail.send").await.expect(200).json()["version"], 2);
}

async fn a_version_is_registered_once(server: &OjsServer) {
    register(server, "a.b", 1, &json!({"schema": {"minItems": 1}})).await.expect(201);
    for again in [json!({"minItems": 1}), json!({"minItems": 2})] {
        let reply = register(server, "a.b", 1, &json!({"schema": again})).await.expect(409);
        assert_eq!(reply.code(), "conflict");
    }
    let kept = server.get("/ojs/v1/admin/schemas/a.b/1").await.expect(200).json();
    assert_eq!(kept["schema"], json!({"minItems": 1}));
}

async fn an_invalid_schema_is_refused(server: &OjsServer) {
    for body in [
        json!({}),
        json!({"schema": null}),
        json!({"schema": []}),
        json!({"schema": {"type": "lisst"}}),
        json!({"schema": {"$ref": "https://example.com/schema.json"}}),
        json!({"schema": {"allOf": [{"$ref": "#"}]}}),
        json!({"schema": {"pattern": "(?=x)"}}),
        json!({"schema": {"description": "x".repeat(70_000)}}),
        json!({"schema": {}, "mode": "sometimes"}),
    ] {
        let reply = register(server, "a.b", 1, &body).await.expect(400);
        assert_eq!(reply.code(), "invalid_request");
    }
    for path in ["a.b/0", "a.b/one", "a.b/99999999999999999999", "A%20b/1"] {
        let path = format!("/ojs/v1/admin/schemas/{path}");
        server.put(&path, &json!({"schema": {}})).await.expect(400);
    }
    assert_eq!(server.fleet.number("SELECT count(*) FROM job_schemas").await, 0);
}

async fn a_schema_of_draft_seven_is_accepted(server: &OjsServer) {
    let schema = json!({"type": "array", "items": [{"type": "string"}, {"type": "integer"}]});
    register(server, "a.b", 1, &json!({"schema": schema, "mode": "enforce"})).await.expect(201);
    server.push(&json!({"type": "a.b", "args": ["x", 1]})).await;
    server.post("/ojs/v1/jobs", &json!({"type": "a.b", "args": [1, "x"]})).await.expect(400);
}

async fn an_unknown_schema_is_not_found(server: &OjsServer) {
    for reply in [
        server.get("/ojs/v1/admin/schemas/a.b").await,
        server.get("/ojs/v1/admin/schemas/a.b/1").await,
        server.get("/ojs/v1/admin/schemas/a.b/versions").await,
        server.delete("/ojs/v1/admin/schemas/a.b/1").await,
        server.patch("/ojs/v1/admin/schemas/a.b", &json!({"mode": "off"})).await,
        server.patch("/ojs/v1/admin/schemas/a.b/1", &json!({"mode": "off"})).await,
    ] {
        assert_eq!(reply.expect(404).code(), "not_found");
    }
}
