//! Headers, error shape, keys, panics.

use super::server::Server;
use crate::{ApiOptions, ConfiguredKeys};
use axum::body::Body;
use axum::http::Request;
use serde_json::json;
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use turnstone_telemetry::SecretRef;

#[tokio::test]
async fn every_answer_has_the_headers_and_every_error_the_shape() {
    let server = Server::start().await;
    let ojs = "application/openjobspec+json";
    for (method, path, status, kind) in [
        ("GET", "/ojs/manifest", 200, ojs),
        ("GET", "/health", 200, ojs),
        ("GET", "/ojs/v1/health", 200, ojs),
        ("GET", "/livez", 200, "application/json"),
        ("GET", "/readyz", 200, "application/json"),
        ("GET", "/agents", 200, "application/json"),
        ("GET", "/reviews", 200, "application/json"),
        ("GET", "/nowhere", 404, "application/json"),
        ("GET", "/ojs/v1/nowhere", 404, ojs),
        ("GET", "/ojs/v1/jobs/x", 404, ojs),
        ("GET", "/ojs/v1/jobs/%ff", 400, ojs),
        ("GET", "/engagements/x", 404, "application/json"),
        ("GET", "/engagements/x/events", 404, "application/json"),
        ("GET", "/agents/x", 404, "application/json"),
        ("GET", "/reviews/x", 404, "application/json"),
        ("POST", "/reviews/x/approve", 404, "application/json"),
        ("GET", "/reviews?state=done", 400, "application/json"),
        ("PATCH", "/ojs/v1/jobs", 405, ojs),
        ("DELETE", "/ojs/manifest", 405, ojs),
        ("GET", "/ojs/v1/admin/jobs?state=lost", 400, ojs),
        ("GET", "/ojs/v1/admin/jobs?page=0", 400, ojs),
    ] {
        let request = Request::builder().method(method).uri(path).header("X-Request-Id", "mine-1");
        let reply = server.request(request.body(Body::empty()).unwrap()).await;
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.text);
        assert_eq!(reply.header("content-type"), kind, "{method} {path}");
        assert_eq!(
            (reply.header("ojs-version"), reply.header("x-request-id")),
            ("1.0", "mine-1"),
            "{method} {path}"
        );
        if status >= 400 {
            let error = &reply.json()["error"];
            assert_eq!(
                (&error["request_id"], &error["retryable"]),
                (&json!("mine-1"), &json!(false)),
                "{path}"
            );
            for key in ["code", "message", "type", "hint", "docs_url"] {
                assert!(error[key].as_str().is_some_and(|text| !text.is_empty()), "{method} {path}: {key}");
            }
        }
    }
    assert!(server.get("/livez").await.header("x-request-id").starts_with("req_"));
    assert!(
        server
            .request(Request::delete("/ojs/manifest").body(Body::empty()).unwrap())
            .await
            .header("allow")
            .contains("GET")
    );
}

#[tokio::test]
async fn another_version_of_ojs_is_refused() {
    let server = Server::start().await;
    let request =
        |version| Request::get("/ojs/v1/health").header("OJS-Version", version).body(Body::empty()).unwrap();
    let reply = server.request(request("2.0")).await;
    assert_eq!((reply.status.as_u16(), reply.code().as_str()), (422, "unsupported"));
    assert_eq!(server.request(request("1.0")).await.status, 200);
}

#[tokio::test]
async fn a_key_opens_everything_but_the_probes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "key-of-the-tests").unwrap();
    let key = SecretRef::File(file.path().into()).resolve().unwrap();
    let server =
        Server::with(ApiOptions { keys: ConfiguredKeys::new(&[key], &[]), ..ApiOptions::default() }).await;
    for path in ["/livez", "/readyz", "/health", "/ojs/manifest"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    for path in ["/ojs/v1/admin/jobs", "/reviews", "/nowhere"] {
        let reply = server.get(path).await;
        assert_eq!((reply.status.as_u16(), reply.header("www-authenticate")), (401, "Bearer"), "{path}");
        assert_eq!(reply.code(), "unauthorized");
    }
    let with = |value| Request::get("/reviews").header("Authorization", value).body(Body::empty()).unwrap();
    for (value, status) in [
        ("Bearer key-of-the-tests", 200),
        ("bearer key-of-the-tests", 200),
        ("Bearer key-of-the-test", 401),
        ("Bearer ", 401),
        ("Basic key-of-the-tests", 401),
    ] {
        assert_eq!(server.request(with(value)).await.status, status, "{value}");
    }
}

#[tokio::test]
async fn an_idempotency_key_belongs_to_its_api_key() {
    let files = [tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap()];
    let keys: Vec<_> = files
        .iter()
        .zip(["key-one", "key-two"])
        .map(|(file, key)| {
            std::fs::write(file.path(), key).unwrap();
            SecretRef::File(file.path().into()).resolve().unwrap()
        })
        .collect();
    let server =
        Server::with(ApiOptions { keys: ConfiguredKeys::new(&keys, &[]), ..ApiOptions::default() }).await;
    let push = async |key: &str, body: &'static str| {
        let request = Request::post("/ojs/v1/jobs").header("Authorization", format!("Bearer {key}"));
        server.request(request.header("Idempotency-Key", "k").body(Body::from(body)).unwrap()).await
    };
    let (first, other) = (r#"{"type":"a","args":[]}"#, r#"{"type":"b","args":[]}"#);
    let (one, two) = (push("key-one", first).await, push("key-two", other).await);
    assert_eq!((one.status.as_u16(), two.status.as_u16()), (201, 201), "{}", two.text);
    assert_eq!(push("key-one", first).await.text, one.text);
    assert_eq!((push("key-two", first).await.status.as_u16(), server.stored_jobs().await), (409, 2));
    assert_eq!(push("key-three", first).await.status, 401);
}

#[tokio::test]
async fn a_web_page_of_another_site_cannot_enqueue() {
    let server = Server::start().await;
    let request = Request::post("/ojs/v1/jobs")
        .header("Origin", "https://example.com")
        .header("Host", "127.0.0.1:8080");
    let reply = server.request(request.body(Body::from(r#"{"type":"a","args":[]}"#)).unwrap()).await;
    assert_eq!((reply.status.as_u16(), server.stored_jobs().await), (403, 0));
}

#[tokio::test]
async fn a_panic_is_an_error_in_the_same_shape() {
    let server = Server::start().await;
    server.clock.0.store(-1, Ordering::Relaxed);
    let reply = server.post("/ojs/v1/jobs", r#"{"type":"a","args":[]}"#).await;
    assert_eq!((reply.status.as_u16(), reply.code().as_str()), (500, "internal_error"));
    assert!(!reply.text.contains("clock"), "{}", reply.text);
    assert_eq!(reply.header("ojs-version"), "1.0");
}

#[tokio::test]
async fn readiness_ends_with_the_drain() {
    let server = Server::start().await;
    server.shutdown.cancel();
    assert_eq!(server.get("/readyz").await.status, 503);
    assert_eq!(server.get("/livez").await.status, 200);
}

#[tokio::test]
async fn a_client_that_sends_too_much_reads_the_answer() {
    let server = Server::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let serving = tokio::spawn(crate::serve(
        listener,
        None,
        server.router.clone(),
        crate::ServeLimits::default(),
        server.shutdown.clone(),
    ));
    let body = "x".repeat(2 * 1024 * 1024);
    let head = format!(
        "POST /ojs/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("payload_too_large"), "{answer}");
    server.shutdown.cancel();
    serving.await.unwrap().unwrap();
}
