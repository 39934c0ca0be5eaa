//! Refused requests: the status, the code, the field, and an unchanged store.

use super::on_sqlite_first;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_body_that_is_no_single_object_is_refused,
    an_ambiguous_body_is_refused,
    numbers_are_refused_only_in_read_fields,
    wrong_members_are_refused_by_name,
    bodies_over_the_limit_are_refused,
    compressed_bodies_are_refused_by_every_operation,
];

/// Of each operation that takes a body, and of one that takes none.
async fn compressed_bodies_are_refused_by_every_operation(server: &OjsServer) {
    let document = server.get("/openapi.json").await.expect(200).json();
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        let takes_body = methods.filter(|(_, operation)| operation.get("requestBody").is_some());
        takes_body.map(move |(method, _)| (method.to_ascii_uppercase(), path.replace(['{', '}'], "")))
    });
    let operations: Vec<(String, String)> = operations.collect();
    assert!(operations.len() > 50, "{}", operations.len());
    for (method, path) in &operations {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        for coding in ["gzip", "identity, br"] {
            let refused = server.send(method.clone(), path, &[("Content-Encoding", coding)], "{}").await;
            assert_eq!(refused.status, 415, "{method} {path}: {}", refused.text);
            assert_eq!(refused.code(), "unsupported_media_type", "{method} {path}");
            assert_eq!(refused.header("accept-encoding"), "identity");
        }
    }
    let job = json!({"type": "a.b", "args": []}).to_string();
    let push = async |coding| {
        server.send(Method::POST, "/ojs/v1/jobs", &[("Content-Encoding", coding)], job.clone()).await
    };
    push("gzip").await.expect(415);
    assert_eq!(server.stored_jobs().await, 0, "a refused request leaves nothing");
    push("Identity").await.expect(201);
}

/// A body, and the status, code and field of its refusal; an empty field allows any.
type Bad<'a> = (Vec<u8>, u16, &'a str, &'a str);

/// Sends each body and compares its refusal; no row may be stored.
async fn refuse(server: &OjsServer, bodies: Vec<Bad<'_>>) {
    let mut wrong = Vec::new();
    for (body, status, code, field) in bodies {
        let shown = String::from_utf8_lossy(&body).chars().take(90).collect::<String>();
        let reply = server.post_text("/ojs/v1/jobs", body).await;
        let error = reply.json()["error"].clone();
        let named = field.is_empty() || error["details"]["field"] == field;
        if reply.status != status || error["code"] != code || error["retryable"] != false || !named {
            wrong.push(format!("{shown}: expected {status} {code} {field}, got {} {error}", reply.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(server.stored_jobs().await, 0, "a refused request leaves nothing");
}

fn job(more: &str) -> Vec<u8> {
    format!(r#"{{"type":"a.b","args":[],{more}}}"#).into_bytes()
}

async fn a_body_that_is_no_single_object_is_refused(server: &OjsServer) {
    let deep = |open: &str, close: &str, times: usize| {
        job(&format!(r#""x":{}1{}"#, open.repeat(times), close.repeat(times)))
    };
    let mut bodies: Vec<Bad<'_>> = [
        &b""[..],
        b"   ",
        b"{",
        b"[]",
        b"null",
        b"\"text\"",
        b"{\"type\":\"a.b\",\"args\":[]} {}",
        b"{\"type\":\"a.b\",\"args\":[],}",
        b"{\"type\":\"a.b\",\"args\":[01]}",
        b"{\"type\":\"a.b\",\"args\":[NaN]}",
        b"{\"type\":\"a.b\",\"args\":[\"\xc3\x28\"]}",
        b"{\"type\":\"a.b\",\"args\":[\"\xed\xa0\x80\"]}",
        b"\xff\xfe{}",
    ]
    .into_iter()
    .map(|body| (body.to_vec(), 400, "invalid_payload", ""))
    .collect();
    bodies.push((deep("[", "]", 100), 400, "invalid_payload", ""));
    bodies.push((deep("{\"k\":", "}", 50_000), 400, "invalid_payload", ""));
    bodies.push((b"[".repeat(500_000), 400, "invalid_payload", ""));
    for (text, place) in [
        (r#""x":{"note":["fine","\ud83e"]}"#, "x.note[1]"),
        (r#""meta":{"a":"\udd80\ud83e"}"#, "meta.a"),
        (r#""options":{"tags":["\uD800x"]}"#, "options.tags[0]"),
    ] {
        bodies.push((job(text), 400, "invalid_payload", place));
    }
    refuse(server, bodies).await;
    server.post_text("/ojs/v1/jobs", deep("[", "]", 99)).await.expect(201);
}

async fn an_ambiguous_body_is_refused(server: &OjsServer) {
    let bodies = [
        (r#""type":"c""#, "type"),
        (r#""x":1,"x":1"#, "x"),
        (r#""meta":{"k":1,"\u006b":2}"#, "meta.k"),
        (r#""x":[{"deep":{"q":1,"r":2,"q":3}}]"#, "x[0].deep.q"),
        (r#""options":{"retry":{"jitter":true,"jitter":false}}"#, "options.retry.jitter"),
    ];
    refuse(server, bodies.map(|(more, field)| (job(more), 400, "invalid_request", field)).into()).await;
}

async fn numbers_are_refused_only_in_read_fields(server: &OjsServer) {
    const COEFFICIENT: &str = "options.retry.backoff_coefficient";
    let bodies = [
        (r#""options":{"priority":1e400}"#, 400, "invalid_request", "options.priority"),
        (r#""priority":99999999999999999999"#, 400, "invalid_request", "options.priority"),
        (r#""options":{"timeout_ms":-1e999}"#, 400, "invalid_request", "options.timeout_ms"),
        (r#""retry":{"max_attempts":1e400}"#, 422, "validation_error", "options.retry.max_attempts"),
        (r#""retry":{"backoff_coefficient":1e400}"#, 422, "validation_error", COEFFICIENT),
        (r#""visibility_timeout_ms":1e30"#, 400, "invalid_request", "options.visibility_timeout_ms"),
        (r#""ext_agent_temperature":1e400"#, 400, "AGENT_INVALID_PARAMETER", "ext_agent_temperature"),
    ];
    refuse(server, bodies.map(|(more, status, code, field)| (job(more), status, code, field)).into()).await;
    let carried = r#""x":1e400,"meta":{"m":-1e400},"options":{"y":1e400,"retry":{"strategy":1e400}}"#;
    server.post_text("/ojs/v1/jobs", job(carried)).await.expect(201);
}

fn wrong_envelopes() -> Vec<(Value, &'static str)> {
    let mut all = Vec::new();
    for job_type in
        ["", "Mail.Send", "mail send", "1mail", "mail@home", "mail..send", ".mail", "mail.", "SHOUT"]
    {
        all.push((json!({"type": job_type, "args": []}), "type"));
    }
    all.push((json!({"type": "x".repeat(256), "args": []}), "type"));
    all.push((json!({"args": []}), "type"));
    all.push((json!({"type": "a"}), "args"));
    for args in [json!({}), json!("x"), json!(1), json!(true), json!(null)] {
        all.push((json!({"type": "a", "args": args}), "args"));
    }
    for id in [
        json!(""),
        json!(null),
        json!(5),
        json!("0190a7b2-0000-4000-8000-0000000000a1"),
        json!("0190A7B2-0000-7000-8000-0000000000A1"),
        json!("0190a7b2-0000-7000-c000-0000000000a1"),
        json!("0190a7b2000070008000000000000001"),
    ] {
        all.push((json!({"type": "a", "args": [], "id": id}), "id"));
    }
    all.push((json!({"type": "a", "args": [], "options": []}), "options"));
    all.push((json!({"type": "a", "args": [], "meta": "m"}), "meta"));
    all
}

async fn wrong_members_are_refused_by_name(server: &OjsServer) {
    let mut bodies = wrong_envelopes();
    for (options, field) in [
        (json!({"queue": "Mail"}), "options.queue"),
        (json!({"queue": "-mail"}), "options.queue"),
        (json!({"queue": "a_b"}), "options.queue"),
        (json!({"queue": "q".repeat(129)}), "options.queue"),
        (json!({"priority": 101}), "options.priority"),
        (json!({"priority": -101}), "options.priority"),
        (json!({"priority": "10"}), "options.priority"),
        (json!({"timeout_ms": 0}), "options.timeout_ms"),
        (json!({"delay_until": "2030-01-01T00:00:00"}), "options.delay_until"),
        (json!({"scheduled_at": "later"}), "options.scheduled_at"),
        (json!({"scheduled_at": "+5s"}), "options.scheduled_at"),
        (json!({"expires_at": 5}), "options.expires_at"),
        (json!({"tags": ["a", 1]}), "options.tags"),
        (json!({"metadata": []}), "options.metadata"),
        (json!({"pending": 1}), "options.pending"),
        (json!({"visibility_timeout": "PT"}), "options.visibility_timeout"),
        (json!({"unique": {"keys": ["shape"]}}), "options.unique.keys"),
        (json!({"unique": {"on_conflict": "maybe"}}), "options.unique.on_conflict"),
        (json!({"rate_limit": {}}), "options.rate_limit"),
        (json!({"rate_limit": {"key": "k", "concurrency": -1}}), "options.rate_limit.concurrency"),
    ] {
        bodies.push((json!({"type": "a", "args": [], "options": options}), field));
    }
    let refused = |(body, field): (Value, _)| (body.to_string().into_bytes(), 400, "invalid_request", field);
    refuse(server, bodies.into_iter().map(refused).collect()).await;
    for field in ["max_attempts", "backoff_coefficient"] {
        let retry = json!({"type": "a", "args": [], "options": {"retry": {field: -1}}});
        let error = server.post("/ojs/v1/jobs", &retry).await.expect(422).json()["error"].clone();
        assert_eq!(error["type"], "validation_error");
        assert!(error["message"].as_str().unwrap().contains(field), "{error}");
    }
    assert_eq!(server.stored_jobs().await, 0);
}

async fn bodies_over_the_limit_are_refused(server: &OjsServer) {
    let large = |bytes: usize| job(&format!(r#""x":"{}""#, "x".repeat(bytes)));
    refuse(server, vec![(large(1024 * 1024), 413, "payload_too_large", "")]).await;
    server.post_text("/ojs/v1/jobs", large(1024 * 1024 - 200)).await.expect(201);
}
