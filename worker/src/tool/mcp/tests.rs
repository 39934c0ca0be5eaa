//! MCP servers that behave, and those that do not.

use super::config::Pin;
use super::*;
use crate::tool::{Invocation, Tool, ToolError, outbound};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use turnstone_domain::{CallId, Clock, Timestamp};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/it/tools/mcp_server.py");

#[derive(Clone, Default)]
struct Hand(Arc<AtomicI64>);

impl Hand {
    fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

fn server_at(config: Value, clock: &Hand) -> Arc<McpServer> {
    let config = serde_json::from_value(config).unwrap();
    McpServer::new("parrot", config, outbound::open_client().unwrap(), Arc::new(clock.clone())).unwrap()
}

fn script(mode: &str, more: Value) -> Arc<McpServer> {
    script_at(mode, more, &Hand::default())
}

fn script_at(mode: &str, more: Value, clock: &Hand) -> Arc<McpServer> {
    let mut config =
        json!({"command": ["python3", SCRIPT, mode], "timeout_ms": 60_000, "connect_timeout_ms": 60_000});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server_at(config, clock)
}

async fn call(server: &Arc<McpServer>, tool: &str, input: Value) -> Result<Value, ToolError> {
    let catalogue = server.catalogue().await.map_err(ToolError::Failed)?;
    let tool = catalogue.get(tool).unwrap_or_else(|| panic!("no {tool} in {catalogue:?}")).clone();
    let call_id = CallId::from("call-7");
    let user = turnstone_domain::engagement::User { id: "ada".to_owned(), email: None };
    tool.call(Invocation {
        call_id: &call_id,
        input: &input,
        timeout: tool.timeout(),
        identity: &crate::tool::Identity { user: Some(user), ..crate::tool::Identity::default() },
    })
    .await
}

/// Of calls that may have been made.
fn loss(outcome: Result<Value, ToolError>) -> String {
    match outcome {
        Err(ToolError::Lost(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn failure(outcome: Result<Value, ToolError>) -> String {
    match outcome {
        Err(ToolError::Failed(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// RS-12 and RS-13.
#[tokio::test]
async fn tools_are_listed_page_by_page_and_one_without_a_schema_is_left_out() {
    let server = script("well", json!({"idempotent": ["echo"]}));
    let catalogue = server.catalogue().await.unwrap();
    assert_eq!(catalogue.tools().count(), 14);
    let echo = catalogue.get("echo").unwrap();
    assert_eq!((echo.spec().name.as_str(), echo.spec().idempotent), ("parrot.echo", true));
    assert_eq!(echo.spec().input_schema["required"], json!(["text"]));
    assert!(!catalogue.get("add").unwrap().spec().idempotent);
    let (name, why) = &catalogue.withheld()[0];
    assert!(name == "broken" && why.contains("JSON Schema"), "{why}");
    let narrowed = script("well", json!({"tools": ["add", "echo"]})).catalogue().await.unwrap();
    let names: Vec<&str> = narrowed.tools().map(|(name, _)| name).collect();
    assert_eq!((names, narrowed.withheld().len()), (vec!["add", "echo"], 0));
}

/// RS-22; OAS-25: the server is told for whom it works.
#[tokio::test]
async fn outcomes_are_structured_or_text_or_blocks() {
    let server = script("well", json!({}));
    assert_eq!(call(&server, "echo", json!({"text": "hi"})).await, Ok(json!("hi")));
    assert_eq!(call(&server, "add", json!({"a": 2, "b": 3})).await, Ok(json!({"sum": 5})));
    let image = call(&server, "image", json!({})).await.unwrap();
    assert_eq!((&image[0]["text"], &image[1]["mimeType"]), (&json!("here"), &json!("image/png")));
    let shown = server.catalogue().await.unwrap().get("image").cloned().unwrap();
    let (call_id, identity) = ("call-7".into(), crate::tool::Identity::default());
    let (input, timeout) = (json!({}), shown.timeout());
    let answer = shown
        .answer(Invocation { call_id: &call_id, input: &input, timeout, identity: &identity })
        .await
        .unwrap();
    assert_eq!(
        (answer.artifacts[0].name.as_str(), &*answer.artifacts[0].content),
        ("image-1.png", &[0, 0, 0][..])
    );
    assert_eq!((&answer.output[0]["text"], &answer.output[1]["type"]), (&json!("here"), &json!("artifact")));
    let meta = call(&server, "meta", json!({})).await.unwrap();
    assert_eq!((&meta["idempotencyKey"], &meta["turnstoneUser"]["id"]), (&json!("call-7"), &json!("ada")));
    assert!(failure(call(&server, "fail", json!({})).await).contains("there is no such ticket"));
}

#[tokio::test]
async fn a_server_inherits_no_secret_and_is_given_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("token");
    std::fs::write(&file, "kea-9021-secret").unwrap();
    let secret = format!("file:{}", file.display());
    let server = script("well", json!({"env": {"A_TOKEN": {"secret": secret}, "COLOUR": "red"}}));
    let seen = call(&server, "env", json!({})).await.unwrap();
    // The server has the secret; what it echoes is struck out before a model could see it.
    assert_eq!((&seen["A_TOKEN"], &seen["COLOUR"]), (&json!("***"), &json!("red")));
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && seen.get("CARGO_MANIFEST_DIR").is_none());
    std::fs::remove_file(&file).unwrap();
    server.close().await;
    let why = server.catalogue().await.unwrap_err();
    assert!(why.contains("env.A_TOKEN") && why.contains("cannot be read"), "{why}");
}

#[tokio::test]
async fn a_server_that_does_not_shake_hands_is_left_alone_for_a_while() {
    // The silent one has to start before it can be silent.
    for (mode, word, ms) in
        [("deaf", "shake hands", 500), ("garbage", "shake hands", 500), ("silent", "list its tools", 5_000)]
    {
        let clock = Hand::default();
        let server = script_at(mode, json!({"connect_timeout_ms": ms}), &clock);
        let first = server.catalogue().await.unwrap_err();
        assert!(first.contains(word), "{mode}: {first}");
        let second = server.catalogue().await.unwrap_err();
        assert!(second.contains(word) && second.contains("tried again after"), "{mode}: {second}");
        clock.advance(1_001);
        let third = server.catalogue().await.unwrap_err();
        assert!(third.contains(word) && !third.contains("tried again after"), "{mode}: {third}");
    }
    let absent = server_at(json!({"command": ["/no/such/program"]}), &Hand::default());
    assert!(absent.catalogue().await.unwrap_err().contains("cannot be started"));
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_says_why_and_is_started_again() {
    let clock = Hand::default();
    let server = script_at("well", json!({}), &clock);
    let text = loss(call(&server, "die", json!({})).await);
    assert!(text.contains("exit status: 7") && text.contains("out of memory, sorry"), "{text}");
    assert_eq!(call(&server, "echo", json!({"text": "again"})).await, Ok(json!("again")));
    // One that dies every time is given a rest that grows.
    loss(call(&server, "die", json!({})).await);
    loss(call(&server, "die", json!({})).await);
    assert!(failure(call(&server, "echo", json!({"text": "x"})).await).contains("tried again after"));
    clock.advance(1_001);
    assert_eq!(call(&server, "echo", json!({"text": "back"})).await, Ok(json!("back")));
}

#[tokio::test]
async fn outcomes_are_bounded() {
    let server = script("well", json!({"max_response_bytes": 10_000}));
    // The tool did what it was asked for: the same call again would do it again.
    let outcome = call(&server, "huge", json!({"bytes": 20_000})).await;
    assert!(
        matches!(&outcome, Err(ToolError::Final(text)) if text.contains("max_response_bytes")),
        "{outcome:?}"
    );
    assert!(call(&server, "huge", json!({"bytes": 9_000})).await.is_ok());
    // Of 100 MB no more is read than a message may have.
    let text = loss(call(&server, "huge", json!({"bytes": 100_000_000})).await);
    assert!(text.contains("longer than allowed"), "{text}");
    assert_eq!(call(&server, "echo", json!({"text": "still here"})).await, Ok(json!("still here")));
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_at_the_server() {
    let server = script("well", json!({"timeout_ms": 300}));
    for tool in ["slow", "latin"] {
        let outcome = call(&server, tool, json!({})).await;
        assert!(matches!(&outcome, Err(ToolError::Timeout(text)) if text.contains("300 ms")), "{outcome:?}");
    }
    let cancelled = call(&server, "cancelled", json!({})).await.unwrap();
    assert_eq!(cancelled["ids"].as_array().map(Vec::len), Some(2), "{cancelled}");
}

fn lives(pid: &Value) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // What was killed and not fetched by its parent yet is a zombie.
    !stat.is_empty() && !stat.contains(") Z ")
}

async fn gone(pid: &Value) {
    for _ in 0..2_000_000 {
        if !lives(pid) {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("process {pid} is still there");
}

#[tokio::test]
async fn processes_die_with_the_worker_and_so_does_what_they_started() {
    let server = script("well", json!({}));
    let pid = call(&server, "spawn", json!({})).await.unwrap()["pid"].clone();
    assert!(lives(&pid));
    server.close().await;
    gone(&pid).await;
    let pid = call(&server, "spawn", json!({})).await.unwrap()["pid"].clone();
    drop(server);
    gone(&pid).await;
}

#[tokio::test]
async fn a_change_of_a_pinned_server_is_refused_and_told() {
    let server = script("well", json!({"pin": true}));
    call(&server, "change", json!({})).await.unwrap();
    let catalogue = server.catalogue().await.unwrap();
    assert!(catalogue.get("echo").is_none() && catalogue.get("add").is_some());
    let why = catalogue.why_not("echo").unwrap();
    assert!(why.contains("description changed") && why.contains("turnstone mcp check parrot"), "{why}");
    // The same over a new connection, where it says what it said first.
    server.close().await;
    assert!(server.catalogue().await.unwrap().get("echo").is_some());

    let open = script("well", json!({}));
    let digest = open.catalogue().await.unwrap().digest().to_owned();
    call(&open, "change", json!({})).await.unwrap();
    let changed = open.catalogue().await.unwrap();
    assert!(changed.get("echo").unwrap().spec().description.contains("evil") && changed.digest() != digest);

    let held = script("well", json!({"pin": digest}));
    assert_eq!(held.catalogue().await.unwrap().tools().count(), 14);
    call(&held, "change", json!({})).await.unwrap();
    assert_eq!(held.catalogue().await.unwrap().tools().count(), 13);
    let other = script("well", json!({"pin": changed.digest()})).catalogue().await.unwrap();
    assert_eq!(other.tools().count(), 0);
    assert!(other.why_not("add").unwrap().contains(&digest), "{:?}", other.withheld());
}

#[test]
fn a_pin_is_a_word_or_a_digest() {
    let pin = |text: &str| serde_json::from_str::<Pin>(text).unwrap();
    assert_eq!((pin("true"), pin("\"sha256:0\"")), (Pin::First(true), Pin::Digest("sha256:0".to_owned())));
}

/// A server over streamable HTTP that answers in JSON.
struct Http {
    url: String,
    listings: Arc<AtomicUsize>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for Http {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn http() -> Http {
    let listings = Arc::new(AtomicUsize::new(0));
    let moved =
        || async { (StatusCode::FOUND, [(header::LOCATION, "http://169.254.169.254/latest/meta-data")]) };
    let app = Router::new()
        .route("/mcp", post(spoken))
        .route("/moved", post(moved))
        .route("/never", post(std::future::pending::<()>))
        .route("/html", post(|| async { axum::response::Html("<p>sign in</p>") }))
        .with_state(Arc::clone(&listings));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    Http { url, listings, serving }
}

async fn spoken(
    State(listings): State<Arc<AtomicUsize>>,
    headers: HeaderMap,
    Json(message): Json<Value>,
) -> Response {
    let Some(id) = message.get("id").cloned() else { return StatusCode::ACCEPTED.into_response() };
    let params = &message["params"];
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "gull", "version": "2"},
        }),
        "tools/list" => {
            listings.fetch_add(1, Ordering::SeqCst);
            let names = ["key", "flood", "latin", "hang", "garbage"];
            json!({"tools": names.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}))})
        }
        _ => match params["name"].as_str().unwrap_or_default() {
            "key" => {
                let key = headers.get("x-key").and_then(|key| key.to_str().ok()).map(str::len);
                json!({"content": [], "structuredContent": {"length": key, "meta": params["_meta"]}})
            }
            "flood" => {
                let megabyte = || Ok::<_, std::io::Error>(vec![b'x'; 1_000_000]);
                let chunks = futures::stream::iter(std::iter::repeat_with(megabyte).take(100));
                let kind = [(header::CONTENT_TYPE, "application/json")];
                return (kind, Body::from_stream(chunks)).into_response();
            }
            "latin" => {
                return ([(header::CONTENT_TYPE, "application/json")], vec![0xff, 0xfe]).into_response();
            }
            "garbage" => return ([(header::CONTENT_TYPE, "application/json")], "{]").into_response(),
            _ => std::future::pending().await,
        },
    };
    Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

fn at(url: &str, more: Value) -> Arc<McpServer> {
    let mut config =
        json!({"url": url, "allow_private": true, "connect_timeout_ms": 2_000, "timeout_ms": 10_000});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server_at(config, &Hand::default())
}

#[tokio::test]
async fn a_server_behind_a_url_is_reached_with_its_headers_and_asked_once() {
    let http = http().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, "gannet-77-secret").unwrap();
    let headers = json!({"headers": {"X-Key": {"secret": format!("file:{}", file.display())}}});
    let server = at(&format!("{}/mcp", http.url), headers);
    let told = call(&server, "key", json!({})).await.unwrap();
    assert_eq!((&told["length"], &told["meta"]["idempotencyKey"]), (&json!(16), &json!("call-7")));
    call(&server, "key", json!({})).await.unwrap();
    assert_eq!(http.listings.load(Ordering::SeqCst), 1);
    assert_eq!(server.server_info().await, Some(("gull".to_owned(), "2".to_owned())));
}

#[tokio::test]
async fn a_hostile_server_behind_a_url_costs_neither_memory_nor_the_turn() {
    let http = http().await;
    let server = at(&format!("{}/mcp", http.url), json!({"timeout_ms": 1_500}));
    for tool in ["flood", "latin", "garbage"] {
        let outcome = call(&server, tool, json!({})).await;
        assert!(matches!(outcome, Err(ToolError::Lost(_))), "{tool}: {outcome:?}");
    }
    let outcome = call(&server, "hang", json!({})).await;
    assert!(matches!(outcome, Err(ToolError::Timeout(_))), "{outcome:?}");
    assert_eq!(call(&server, "key", json!({})).await.unwrap()["length"], Value::Null);
    for (path, word) in
        [("moved", "302"), ("never", "shake hands"), ("html", "content type"), ("absent", "404")]
    {
        let why =
            at(&format!("{}/{path}?key=hidden-4711", http.url), json!({})).catalogue().await.unwrap_err();
        assert!(why.contains(word) && !why.contains("hidden-4711"), "{path}: {why}");
    }
}

#[tokio::test]
async fn a_server_that_went_away_is_not_offered_until_it_is_back() {
    let http = http().await;
    let server = at(&format!("{}/mcp", http.url), json!({}));
    call(&server, "key", json!({})).await.unwrap();
    drop(http);
    // Until it is noticed a call may be answered on an old connection, or fail on it.
    let mut last = call(&server, "key", json!({})).await;
    for _ in 0..10 {
        if matches!(&last, Err(why) if why.to_string().contains("tried again after")) {
            return;
        }
        last = call(&server, "key", json!({})).await;
    }
    panic!("{last:?}");
}

#[tokio::test]
async fn the_guard_stands_before_a_url_unless_it_is_turned_off() {
    let http = http().await;
    let port = http.url.rsplit(':').next().unwrap();
    let config =
        serde_json::from_value(json!({"url": format!("http://turnstone-home.localdomain:{port}/mcp")}));
    let clock = Arc::new(Hand::default());
    let server = McpServer::new("x", config.unwrap(), outbound::guarded_client().unwrap(), clock).unwrap();
    assert!(server.catalogue().await.is_err());
    assert_eq!(http.listings.load(Ordering::SeqCst), 0);
}
