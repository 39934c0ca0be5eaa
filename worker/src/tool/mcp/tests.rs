//! Pins, and MCP servers behind a URL. `tests/it/tools/stdio.rs` tests those that are processes.

use super::config::Pin;
use super::*;
use crate::served::serve;
use crate::tool::{Invocation, Programs, Tool, ToolError, outbound};
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::{CallId, Clock, Timestamp};

/// A clock that does not advance.
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
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

#[test]
fn a_pin_is_a_word_or_a_digest() {
    let pin = |text: &str| serde_json::from_str::<Pin>(text).unwrap();
    assert_eq!((pin("true"), pin("\"sha256:0\"")), (Pin::First(true), Pin::Digest("sha256:0".to_owned())));
}

/// A server over streamable HTTP that answers in JSON.
struct Http {
    url: String,
    listings: Arc<AtomicUsize>,
    _serving: AbortOnDropHandle<()>,
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
    let (address, _serving) = serve(app).await;
    Http { url: format!("http://{address}"), listings, _serving }
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
            let names = ["key", "flood", "latin", "hang", "garbage", "crowded", "busy", "down"];
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
            "crowded" => return StatusCode::TOO_MANY_REQUESTS.into_response(),
            "busy" => {
                return (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "2")]).into_response();
            }
            "down" => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
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
    let config = serde_json::from_value(config).unwrap();
    McpServer::new("parrot", config, outbound::open_client().unwrap(), Programs::default(), Arc::new(Still))
        .unwrap()
}

#[tokio::test]
async fn a_server_behind_a_url_is_reached_with_its_headers_and_asked_once() {
    let http = http().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("key");
    std::fs::write(&file, "gannet-77-secret").unwrap();
    let headers = json!({"headers": {"X-Key": {"secret": format!("file:{}", file.display())}}});
    let server = at(&format!("{}/mcp", http.url), headers);
    let reported = call(&server, "key", json!({})).await.unwrap();
    assert_eq!((&reported["length"], &reported["meta"]["idempotencyKey"]), (&json!(16), &json!("call-7")));
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

/// Issue 16: a call that a server rejected had no effect; the effect of any other call without an answer is
/// unknown.
#[tokio::test]
async fn a_call_that_a_server_turned_away_had_no_effect() {
    let http = http().await;
    let server = at(&format!("{}/mcp", http.url), json!({}));
    let outcome = call(&server, "crowded", json!({})).await;
    assert!(matches!(outcome, Err(ToolError::Busy(_, None))), "{outcome:?}");
    let outcome = call(&server, "busy", json!({})).await;
    assert!(matches!(outcome, Err(ToolError::Busy(_, Some(2000)))), "{outcome:?}");
    let outcome = call(&server, "down", json!({})).await;
    assert!(matches!(outcome, Err(ToolError::Lost(_))), "{outcome:?}");
}

#[tokio::test]
async fn a_server_that_went_away_is_not_offered_until_it_is_back() {
    let http = http().await;
    let server = at(&format!("{}/mcp", http.url), json!({}));
    call(&server, "key", json!({})).await.unwrap();
    drop(http);
    // Until the failure is noticed, a call may be answered on an old connection, or fail on it.
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
    let server = McpServer::new(
        "x",
        config.unwrap(),
        outbound::guarded_client().unwrap(),
        Programs::default(),
        Arc::new(Still),
    )
    .unwrap();
    assert!(server.catalogue().await.is_err());
    assert_eq!(http.listings.load(Ordering::SeqCst), 0);
}
