//! A hostile server, or an address without one: its answers are bounded, its requests are refused, and the calling
//! agent receives the reason. An agent that is not configured is not called.

use super::{PROTOCOLS, Site, remote, tool_outcome, who, write};
use crate::program::Program;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use turnstone_tests::documents::oas;
use turnstone_tests::{ModelServer, Reply, model_server};

/// Misbehaves as the first segment of the path says.
async fn answer(
    State(requested): State<Arc<AtomicUsize>>,
    Path(path): Path<String>,
    body: String,
) -> Response {
    let (how, rest) = path.split_once('/').unwrap_or_default();
    let written =
        |value: Value| ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response();
    let described = rest.ends_with("describe") || rest.ends_with("agent-card.json");
    let rpc = body.contains("\"jsonrpc\"");
    match (how, described) {
        ("huge-card", true) | ("endless", false) => endless(),
        ("no-json-card", true) | ("no-json", false) => "<html>".into_response(),
        ("moved-card", true) | ("moved", false) => {
            requested.fetch_add(1, Ordering::SeqCst);
            let there = [(header::LOCATION, "http://169.254.169.254/latest/meta-data/")];
            (StatusCode::TEMPORARY_REDIRECT, there).into_response()
        }
        ("elsewhere-card", true) => written(json!({"description": "x", "supportedInterfaces": [
            {"url": "http://169.254.169.254/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]})),
        (_, true) => written(json!({"name": "scout", "purpose": "It looks.", "description": "It looks.",
            "supportedInterfaces": [{"url": format!("/{how}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]})),
        ("deep", false) => written(serde_json::from_str(&("[".repeat(120) + &"]".repeat(120))).unwrap()),
        ("liar", false) if rpc => written(json!({"jsonrpc": "2.0", "id": 1, "result": {"task": {"id": 7}}})),
        ("negative", false) if rpc => {
            let task = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"},
                "artifacts": [{"artifactId": "a", "parts": [{"text": "all quiet"}]}], "metadata": {"tokensUsed": -5}});
            let result = if body.contains("SendMessage") { json!({"task": task}) } else { task };
            written(json!({"jsonrpc": "2.0", "id": 1, "result": result}))
        }
        ("negative", false) if rest.contains("getevents") => {
            let ends = [
                json!({"id": 1, "type": "text_output", "depth": 0, "content": "all quiet"}),
                json!({"id": 2, "type": "completion_result", "depth": 0, "usage": {"input": -5, "output": 0}}),
                json!({"id": 3, "type": "request_completed", "finish_reason": "success"}),
            ];
            let text: String = ends.iter().map(|event| format!("data: {event}\n\n")).collect();
            ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response()
        }
        ("liar", false) if rest.contains("getevents") => {
            let end = json!({"id": 1, "type": "request_completed", "finish_reason": "error", "error": {"message": "it lied"}});
            ([(header::CONTENT_TYPE, "text/event-stream")], format!("data: {end}\n\n")).into_response()
        }
        _ => StatusCode::ACCEPTED.into_response(),
    }
}

/// Returns an answer without an end.
fn endless() -> Response {
    let pieces = futures::stream::repeat_with(|| Ok::<_, std::io::Error>("x".repeat(65_536)));
    let body = Body::from_stream(pieces);
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Front calls the agents that it may call, and repeats their answers.
fn script(request: &Value) -> Reply {
    let offered = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    match (who(request), model_server::outcomes(request)) {
        (_, 0) if offered => Reply::call("scout", json!({"input": "look"})),
        (_, 0) => Reply::text("there is nobody to ask"),
        (_, _) => Reply::text(format!("heard {}", tool_outcome(request))),
    }
}

/// Issue 7, "Bad input": endless answers, answers that are no JSON, too deep or false, and redirects to a metadata
/// service end the call with an error. Redirects are not followed. A card like that makes the tool unavailable, and
/// the turn continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_servers_answer_is_bounded_and_an_error() {
    let requested = Arc::new(AtomicUsize::new(0));
    let app = Router::new().route("/{*path}", axum::routing::any(answer)).with_state(Arc::clone(&requested));
    let (far, serving) = turnstone_tests::http::serve(app).await;
    let models = ModelServer::start(script).await;
    for (protocol, how, words) in [
        ("agent-protocol", "endless", "larger than"),
        ("agent-protocol", "no-json", "no JSON"),
        ("agent-protocol", "moved", "redirects are not followed"),
        ("agent-protocol", "liar", "it lied"),
        ("a2a", "endless", "larger than"),
        ("a2a", "no-json", "no JSON"),
        ("a2a", "moved", "redirects are not followed"),
        ("a2a", "deep", "nests deeper"),
        ("a2a", "liar", "neither a message nor a task"),
        ("agent-protocol", "huge-card", "nobody to ask"),
        ("agent-protocol", "no-json-card", "nobody to ask"),
        ("agent-protocol", "moved-card", "nobody to ask"),
        ("a2a", "huge-card", "nobody to ask"),
        ("a2a", "elsewhere-card", "nobody to ask"),
    ] {
        let settings = remote(protocol, how, &far, "");
        let near = Site::start(&models.url, &settings, &[("front", "capabilities: {scout: {}}\n")]).await;
        let job = near.push("front").await;
        let state = near.in_state(&job, &["completed", "failed"]).await;
        let text = state["results"]["text"].as_str().unwrap_or_default();
        assert!(text.contains(words), "{protocol} {how}: {state:#}");
        near.stop().await;
    }
    serving.abort();
    assert!(requested.load(Ordering::SeqCst) >= 3, "the moved ones were asked");
}

/// A server that reports less than no tokens is paid what was set aside for its call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_negative_count_is_booked_as_the_reservation() {
    let app = Router::new().route("/{*path}", axum::routing::any(answer)).with_state(Arc::default());
    let (far, serving) = turnstone_tests::http::serve(app).await;
    let models = ModelServer::start(script).await;
    for protocol in ["agent-protocol", "a2a"] {
        let settings = remote(protocol, "negative", &far, &format!("max_tokens = 700\n{}", super::as_peer()));
        let near = Site::start(&models.url, &settings, &[("front", "capabilities: {scout: {}}\n")]).await;
        let job = near.push("front").await;
        let state = near.in_state(&job, &["completed", "failed"]).await;
        let text = state["results"]["text"].as_str().unwrap_or_default();
        assert!(text.contains("all quiet"), "{protocol}: {state:#}");
        let of_models: i64 = 19 + 15;
        assert_eq!(state["tokens"]["used"], 700 + of_models, "{protocol}: {state:#}");
        near.stop().await;
    }
    serving.abort();
}

/// Issue 7: a remote agent is called only when the configuration names it. Private addresses and plain HTTP need a
/// setting, and an unknown key of a section is named.
#[tokio::test]
async fn remote_agents_are_off_unless_they_are_configured() {
    turnstone_tests::fleet::install_crypto();
    let folder = turnstone_tests::scratch::folder();
    std::fs::create_dir(folder.path().join("agents")).unwrap();
    write(folder.path(), "agents/front.yaml", &oas("front", "capabilities: {scout: {}}\n"));
    for (settings, words) in [
        (String::new(), "scout"),
        (
            remote("a2a", "a2a", "http://127.0.0.1:1", "").replace("allow_private = true\n", ""),
            "[remote.agents.scout] url",
        ),
        (
            remote("a2a", "a2a", "http://agents.example.com", "").replace("allow_private = true\n", ""),
            "https",
        ),
        (remote("smoke-signals", "a2a", "https://agents.example.com", ""), "smoke-signals"),
        (remote("a2a", "a2a", "https://agents.example.com", "timeout_ms = 0"), "timeout_ms"),
        (
            remote("a2a", "a2a", "https://agents.example.com", "headers = { Authorization = 'Bearer k-1' }"),
            "headers.Authorization",
        ),
    ] {
        write(folder.path(), "turnstone.toml", &format!("[agents]\ndir = 'agents'\n{settings}"));
        let mut program =
            Program::start(folder.path(), &["dev", "--data", "data", "--bind", "127.0.0.1:0"], &[]);
        program.warns(words).await;
        drop(program);
    }
    for (protocol, place) in PROTOCOLS {
        let settings = remote(protocol, place, "https://agents.example.com", "");
        write(folder.path(), "turnstone.toml", &format!("[agents]\ndir = 'agents'\n{settings}"));
        let lint = crate::program::run(folder.path(), &["agent", "lint", "agents/front.yaml"], &[]).await;
        assert_eq!(lint.code, Some(0), "{lint:?}");
    }
}
