//! The envelope over HTTP: fields that are carried unchanged, fields that are read, and the answer.

use super::on_sqlite_first;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::OjsServer;

const ID: &str = "0190a7b2-0000-7000-8000-0000000000a1";

on_sqlite_first![
    texts_are_returned_unchanged,
    a_new_job_has_its_defaults_and_no_later_fields,
    every_option_is_read_and_returned,
    system_managed_fields_are_ignored,
    reading_a_job_changes_nothing,
    an_id_is_taken_once,
    an_ignored_duplicate_is_answered_with_the_other_job,
    jobs_that_must_be_unique_are_compared_by_value,
    the_tenant_of_the_header_is_in_meta,
    every_answer_has_the_headers_of_the_binding,
    media_types_of_json_are_equal,
];

/// Asserts that the answer has a part of the job's text in `job` and beside it.
fn carries(reply: &str, part: &str) {
    assert_eq!(reply.matches(part).count(), 2, "{part} has to be in the job and beside it: {reply}");
}

async fn texts_are_returned_unchanged(server: &OjsServer) {
    let parts = [
        r#""args":[1e400,-1E+400,1000000000000000000000000000000,0.1,1.0,[[[]]],{"z":1,"a":null}]"#,
        r#""meta":{"ojs.codec.key_id":"k","n":0.10,"b":{"y":1,"x":[1.50]}}"#,
        r#""x_zeta":{"q":1e999},"x_alpha":[123456789012345678901234567890],"version":3"#,
        r#""options":{"queue":"raw","x_unknown":1e400}"#,
    ];
    let body = format!(r#"{{"type":"raw.carried","id":"{ID}",{}}}"#, parts.join(","));
    let created = server.post_text("/ojs/v1/jobs", body).await.expect(201);
    let shown = server.get(&format!("/ojs/v1/jobs/{ID}")).await.expect(200);
    for part in parts {
        carries(&created.text, part);
        carries(&shown.text, part);
    }
    assert_eq!(created.text, shown.text, "the answer to the enqueue is the job as it is stored");
    let listed = server.get("/ojs/v1/admin/jobs").await.expect(200);
    assert!(parts.iter().all(|part| listed.text.contains(part)), "{}", listed.text);
}

async fn a_new_job_has_its_defaults_and_no_later_fields(server: &OjsServer) {
    let reply =
        server.post("/ojs/v1/jobs", &json!({"type": "mail-room.sort_2", "args": []})).await.expect(201);
    let job = reply.json()["job"].clone();
    for (field, value) in [
        ("specversion", json!("1.0")),
        ("queue", json!("default")),
        ("state", json!("available")),
        ("args", json!([])),
        ("meta", json!({})),
        ("priority", json!(0)),
        ("attempt", json!(0)),
        ("max_attempts", json!(3)),
        ("created_at", json!("2026-01-01T00:00:00.000Z")),
        ("enqueued_at", json!("2026-01-01T00:00:00.000Z")),
    ] {
        assert_eq!(job[field], value, "{field}");
    }
    for absent in [
        "started_at",
        "completed_at",
        "cancelled_at",
        "discarded_at",
        "error",
        "errors",
        "result",
        "worker_id",
    ] {
        assert_eq!(job.get(absent), None, "{absent}");
    }
    let id = job["id"].as_str().unwrap();
    assert_eq!((id.len(), id.as_bytes()[14]), (36, b'7'), "{id} is a UUIDv7");
    assert_eq!(reply.header("location"), format!("/ojs/v1/jobs/{id}"));
    for (field, value) in job.as_object().unwrap() {
        assert_eq!(&reply.json()[field], value, "{field} is beside the wrapper too");
    }
}

async fn every_option_is_read_and_returned(server: &OjsServer) {
    let id = server
        .push(&json!({
            "type": "report.make", "args": ["q3"], "meta": {"trace": "t"},
            "options": {
                "queue": "reports.eu-1", "priority": -100, "timeout_ms": 120_000, "delay_until": "+PT5S",
                "expires_at": "2099-12-31T23:59:59Z", "tags": ["a", "b"],
                "retry": {"max_attempts": 7, "initial_delay_ms": 5, "strategy": "x"},
                "metadata": {"trace": "other", "cost_center": 12}, "visibility_timeout_ms": 3_000,
                "rate_limit": {"key": "k", "concurrency": 2},
            },
        }))
        .await;
    let job = server.job(&id).await;
    for (field, value) in [
        ("queue", json!("reports.eu-1")),
        ("state", json!("scheduled")),
        ("priority", json!(-100)),
        ("timeout_ms", json!(120_000)),
        ("scheduled_at", json!("2026-01-01T00:00:05.000Z")),
        ("expires_at", json!("2099-12-31T23:59:59Z")),
        ("tags", json!(["a", "b"])),
        ("max_attempts", json!(7)),
        ("meta", json!({"trace": "t", "cost_center": 12})),
        ("rate_limit", json!({"key": "k", "concurrency": 2})),
    ] {
        assert_eq!(job[field], value, "{field}");
    }
    let sql = "SELECT count(*) FROM jobs WHERE visibility_ms = 3000 AND limit_key = 'k'";
    assert_eq!(server.fleet.number(sql).await, 1, "the terms are stored");
    let past = json!({"type": "a", "args": [], "scheduled_at": "2020-01-01T00:00:00+02:00", "queue": "top"});
    let job = server.job(&server.push(&past).await).await;
    assert_eq!((&job["state"], &job["queue"]), (&json!("available"), &json!("top")), "the past is now");
    assert_eq!(job["scheduled_at"], "2020-01-01T00:00:00+02:00", "in the client's own spelling");
}

async fn system_managed_fields_are_ignored(server: &OjsServer) {
    let id = server
        .push(&json!({
            "type": "a", "args": [], "specversion": "1.0", "state": "completed", "attempt": 9,
            "created_at": "1999-01-01T00:00:00Z", "completed_at": "1999-01-01T00:00:00Z", "result": 1,
            "error": {"code": "E"}, "worker_id": "me", "x_state": "mine",
        }))
        .await;
    let job = server.job(&id).await;
    assert_eq!((&job["state"], &job["attempt"]), (&json!("available"), &json!(0)));
    assert_eq!((&job["x_state"], &job["created_at"]), (&json!("mine"), &json!("2026-01-01T00:00:00.000Z")));
    for absent in ["completed_at", "result", "error", "worker_id"] {
        assert_eq!(job.get(absent), None, "{absent}");
    }
}

async fn reading_a_job_changes_nothing(server: &OjsServer) {
    let id = server.push(&json!({"type": "a", "args": [{"b": 1, "a": 2.50}], "x": {"z": 0, "y": 1}})).await;
    let path = format!("/ojs/v1/jobs/{id}");
    let first = server.get(&path).await.expect(200);
    server.fleet.clock.advance_ms(60_000);
    for _ in 0..2 {
        assert_eq!(server.get(&path).await.text, first.text);
    }
}

async fn an_id_is_taken_once(server: &OjsServer) {
    let job = json!({"type": "a", "args": [], "id": ID});
    assert_eq!(server.push(&job).await, ID);
    let again = server.post("/ojs/v1/jobs", &job).await.expect(409);
    assert_eq!(again.code(), "duplicate");
    assert_eq!(again.json()["error"]["details"]["existing_job_id"], ID);
    assert_eq!(server.stored_jobs().await, 1);
}

async fn an_ignored_duplicate_is_answered_with_the_other_job(server: &OjsServer) {
    let job = |on_conflict: &str| {
        let unique = json!({"keys": ["type", "args"], "on_conflict": on_conflict});
        json!({"type": "bill.send", "args": [{"to": "ada", "sum": 1}], "options": {"unique": unique}})
    };
    let first = server.push(&job("reject")).await;
    let refused = server.post("/ojs/v1/jobs", &job("reject")).await.expect(409);
    assert_eq!(refused.code(), "duplicate");
    assert_eq!(refused.json()["error"]["details"]["existing_job_id"], first);
    for word in ["ignore", "use_existing"] {
        let other = server.post("/ojs/v1/jobs", &job(word)).await.expect(200);
        assert_eq!(other.json()["job"]["id"], first);
        assert_eq!(other.json()["deduplicated"], true);
        assert_eq!(other.header("location"), format!("/ojs/v1/jobs/{first}"));
    }
    let replacing = server.push(&job("replace")).await;
    assert_eq!(server.job(&first).await["state"], "cancelled");
    assert_eq!(server.job(&replacing).await["state"], "available");
    assert_eq!(server.stored_jobs().await, 2);
}

async fn jobs_that_must_be_unique_are_compared_by_value(server: &OjsServer) {
    let push = async |args: &str, meta: &str| {
        let unique = r#"{"keys":["args","meta"],"args_keys":["n"],"meta_keys":["m"],"period":"PT10S"}"#;
        let body = format!(r#"{{"type":"u","args":{args},"meta":{meta},"options":{{"unique":{unique}}}}}"#);
        server.post_text("/ojs/v1/jobs", body).await.status
    };
    assert_eq!(push(r#"[{"n":{"a":1,"b":"caf\u00e9"},"x":1}]"#, r#"{"m":1}"#).await, 201);
    let same = "[{\"x\":2,\"n\":{\"b\":\"cafe\u{301}\", \"a\":1.0}}]";
    assert_eq!(push(same, r#"{"y":1e400,"m":1}"#).await, 409);
    assert_eq!(push(same, r#"{"m":2}"#).await, 201, "another meta");
    assert_eq!(push(r#"[{"n":2}]"#, r#"{"m":1}"#).await, 201, "other arguments");
    assert_eq!(push(r#"[{"n":1e400}]"#, r#"{"m":1}"#).await, 201, "a number of any size");
    assert_eq!(push(r#"[{"n":10e399}]"#, r#"{"m":1}"#).await, 409, "the same number");
    server.fleet.clock.advance_ms(10_000);
    assert_eq!(push(same, r#"{"m":1}"#).await, 201, "the period is over");
}

async fn the_tenant_of_the_header_is_in_meta(server: &OjsServer) {
    let send = async |body: Value| {
        server.send(Method::POST, "/ojs/v1/jobs", &[("X-OJS-Tenant", "acme")], body.to_string()).await
    };
    let job = send(json!({"type": "a", "args": [], "meta": {"z": 1}})).await.expect(201).json();
    assert_eq!(job["job"]["meta"], json!({"z": 1, "tenant_id": "acme"}));
    for (body, field) in [
        (json!({"type": "a", "args": [], "tenant_id": "other"}), "tenant_id"),
        (json!({"type": "a", "args": [], "meta": {"tenant_id": "other"}}), "meta.tenant_id"),
    ] {
        let refused = send(body).await.expect(400).json();
        assert_eq!(refused["error"]["details"]["field"], field);
    }
    let named = json!({"type": "a", "args": [], "tenant_id": "acme"});
    let own = server.post("/ojs/v1/jobs", &named).await.expect(201).json();
    assert_eq!((&own["tenant_id"], &own["meta"]["tenant_id"]), (&json!("acme"), &json!("acme")));
    let sql = "SELECT count(*) FROM jobs WHERE tenant = 'acme'";
    assert_eq!((server.fleet.number(sql).await, server.stored_jobs().await), (2, 2));
}

async fn every_answer_has_the_headers_of_the_binding(server: &OjsServer) {
    let job = json!({"type": "a", "args": [], "id": ID}).to_string();
    let own = format!("/ojs/v1/jobs/{ID}");
    for (method, path, body, status) in [
        (Method::POST, "/ojs/v1/jobs", job.as_str(), 201),
        (Method::POST, "/ojs/v1/jobs", "{", 400),
        (Method::GET, "/ojs/v1/jobs/none", "", 404),
        (Method::DELETE, own.as_str(), "", 200),
        (Method::DELETE, own.as_str(), "", 409),
        (Method::GET, "/ojs/v1/nothing-here", "", 404),
    ] {
        let reply = server.send(method, path, &[("X-Request-Id", "mine-7")], body).await.expect(status);
        assert_eq!(reply.header("content-type"), "application/openjobspec+json", "{path}");
        assert_eq!((reply.header("ojs-version"), reply.header("x-request-id")), ("1.0", "mine-7"), "{path}");
        if status >= 400 {
            let error = reply.json()["error"].clone();
            assert_eq!(
                (&error["retryable"], &error["request_id"]),
                (&json!(false), &json!("mine-7")),
                "{path}"
            );
            for filled in ["code", "message", "type", "hint", "docs_url"] {
                assert!(error[filled].as_str().is_some_and(|text| !text.is_empty()), "{path}: {filled}");
            }
            assert!(error["details"].is_object(), "{path}");
        }
    }
}

async fn media_types_of_json_are_equal(server: &OjsServer) {
    let send = async |kind: &str| {
        let headers: &[(&str, &str)] = &[("Content-Type", kind)];
        server.send(Method::POST, "/ojs/v1/jobs", headers, r#"{"type":"a","args":[]}"#).await
    };
    for kind in ["application/json", "application/openjobspec+json", "Application/JSON; charset=utf-8"] {
        assert_eq!(send(kind).await.status, 201, "{kind}");
    }
    for kind in ["text/plain", "application/xml", "multipart/form-data", "application/jsonp"] {
        assert_eq!(send(kind).await.expect(400).code(), "invalid_request", "{kind}");
    }
    assert_eq!(server.stored_jobs().await, 3);
}
