//! MCP servers over HTTP, and HTTP tools, whose answers are not quite as the protocols have them. All that can be read is
//! kept, and an event names the rest.

use super::{resolved, with_servers};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Barrier;
use tokio_util::task::AbortOnDropHandle;
use turnstone_tests::{Fleet, Gate, Reply, model_server};
use turnstone_worker::tool::Toolbox;

/// The behaviour of a server.
#[derive(Default)]
struct Behaviour {
    /// The results of `tools/list`, by their cursors; the first page has none.
    pages: BTreeMap<&'static str, Value>,
    /// The result of `tools/call` with its `Content-Type`: the bytes between `"result":` and the end.
    result: Mutex<(&'static str, Vec<u8>)>,
    /// The only session that is known; empty for any.
    session: Mutex<String>,
    /// The answer about another session.
    unknown: Mutex<(u16, &'static str)>,
    /// The handshakes that are answered together: one alone has no answer.
    meeting: Option<Arc<Barrier>>,
    /// Opened for `tools/list`, once it is closed.
    lists: Mutex<Option<Gate>>,
    /// The requests, by their methods.
    counts: Mutex<BTreeMap<String, usize>>,
    sessions: AtomicUsize,
}

impl Behaviour {
    fn listing(pages: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        Self { pages: pages.into_iter().collect(), ..Self::default() }
    }

    fn with_tools(names: &[&str]) -> Self {
        let tools: Vec<Value> = names.iter().map(|name| tool(name)).collect();
        Self::listing([("", json!({"tools": tools}))])
    }

    fn count(&self, method: &str) -> usize {
        self.counts.lock().unwrap().get(method).copied().unwrap_or_default()
    }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

async fn answered(State(own): State<Arc<Behaviour>>, headers: HeaderMap, body: Bytes) -> Response {
    let message: Value = serde_json::from_slice(&body).unwrap();
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let known = own.session.lock().unwrap().clone();
    let sent = headers.get("mcp-session-id").map_or("", |id| id.to_str().unwrap());
    if method != "initialize" && sent != known && !known.is_empty() {
        let (status, text) = *own.unknown.lock().unwrap();
        return (StatusCode::from_u16(status).unwrap(), text).into_response();
    }
    *own.counts.lock().unwrap().entry(method.clone()).or_default() += 1;
    let Some(id) = message.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let whole = |result: Value| ("application/json".to_owned(), result.to_string().into_bytes());
    let (kind, result) = match method.as_str() {
        "initialize" => {
            if let Some(meeting) = &own.meeting {
                meeting.wait().await;
            }
            let session = format!("s-{}", own.sessions.fetch_add(1, Ordering::SeqCst));
            if !known.is_empty() {
                own.session.lock().unwrap().clone_from(&session);
            }
            let result = json!({"protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "gull", "version": "2"}});
            let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
            return ([("content-type", "application/json"), ("mcp-session-id", &session)], text)
                .into_response();
        }
        "tools/list" => {
            let gate = own.lists.lock().unwrap().clone();
            if let Some(gate) = gate {
                gate.passed().await;
            }
            whole(own.pages[message["params"]["cursor"].as_str().unwrap_or_default()].clone())
        }
        _ => {
            let (kind, result) = own.result.lock().unwrap().clone();
            (kind.to_owned(), result)
        }
    };
    let mut text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":").into_bytes();
    text.extend(result);
    text.push(b'}');
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn serve(app: Router) -> (String, AbortOnDropHandle<()>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (url, AbortOnDropHandle::new(tokio::spawn(async move { axum::serve(listener, app).await.unwrap() })))
}

/// Starts a server, and a fleet whose worker knows it as `gull`.
async fn fleet_with(
    own: Behaviour,
    script: impl Fn(&Value) -> Reply + Send + Sync + 'static,
) -> (Fleet, Arc<Behaviour>, AbortOnDropHandle<()>) {
    let own = Arc::new(own);
    let app = Router::new().route("/mcp", post(answered)).with_state(Arc::clone(&own));
    let (url, serving) = serve(app).await;
    let mut fleet = Fleet::builder().workers(0).model(script).start().await;
    let servers = json!({"gull": {"url": format!("{url}/mcp"), "allow_private": true}});
    fleet.add_worker_with(4, |deps| with_servers(deps, &servers));
    (fleet, own, serving)
}

fn job(tools: &[&str]) -> Value {
    let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
    json!({"type": "agent.gull", "args": ["go"], "ext_agent_model": "m", "ext_agent_token_budget": 100_000,
           "ext_agent_tools": tools})
}

fn calls_once(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("gull_look", json!({})),
        _ => Reply::text("done"),
    }
}

/// An entry of a list that cannot be read loses no other tool, and no later page. An event names it.
#[tokio::test]
async fn an_unreadable_entry_loses_no_other_tool() {
    let first = json!({"tools": [{"inputSchema": {"type": "object"}}, tool("look"), {"name": "blunt"}], "nextCursor": "2"});
    let own = Behaviour::listing([("", first), ("2", json!({"tools": [tool("find")], "nextCursor": ""}))]);
    let (fleet, own, _serving) = fleet_with(own, |_: &Value| Reply::text("done")).await;
    let id = fleet.push(&job(&["gull.look", "gull.find", "gull.blunt"])).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    assert_eq!(model_server::offered(&fleet.models.calls()[0].request), ["gull_look", "gull_find"]);
    let events = fleet.events_named(&id, "tool.unavailable").await;
    let names: Vec<&str> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"gull.#1") && names.contains(&"gull.blunt"), "{events:#?}");
    assert_eq!((events.len(), own.count("tools/list")), (2, 2), "an empty cursor ends the list: {events:#?}");
    fleet.end().await;
}

/// A cursor that leads back, and a later page that is none, end the list with an event; the tools before are kept.
#[tokio::test]
async fn a_list_that_does_not_end_well_is_kept() {
    let page = |name: &str, next: &str| json!({"tools": [tool(name)], "nextCursor": next});
    for (pages, word) in [
        (vec![("", page("look", "2")), ("2", page("find", "2"))], "a cursor is repeated"),
        (vec![("", page("look", "2")), ("2", page("find", "3")), ("3", json!({"things": []}))], "page 3"),
    ] {
        let (fleet, _, _serving) =
            fleet_with(Behaviour::listing(pages), |_: &Value| Reply::text("done")).await;
        let id = fleet.push(&job(&["gull.look", "gull.find"])).await;
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        assert_eq!(model_server::offered(&fleet.models.calls()[0].request), ["gull_look", "gull_find"]);
        let events = fleet.events_named(&id, "tool.unavailable").await;
        assert_eq!((events.len(), &events[0]["name"]), (1, &json!("gull.*")), "{events:#?}");
        assert!(events[0]["message"].as_str().unwrap().contains(word), "{events:#?}");
        fleet.end().await;
    }
}

/// A result with content of an unknown type, in another charset, or with numbers that JSON does not have, reaches the
/// model. An event says how it was read.
#[tokio::test]
async fn an_unusual_result_reaches_the_model() {
    let chart = br#"{"content":[{"type":"chart","title":"gulls"}]}"#;
    let latin = b"{\"content\":[{\"type\":\"text\",\"text\":\"caf\xe9\"}]}";
    let japanese = b"{\"content\":[{\"type\":\"text\",\"text\":\"\x93\xfa\x96{\"}]}";
    let number = br#"{"content":[],"structuredContent":{"mean":NaN,"count":3}}"#;
    for (kind, result, seen, word) in [
        ("application/json", &chart[..], "gulls", Some("`chart`")),
        ("application/json; charset=ISO-8859-1", &latin[..], "café", None),
        ("application/json; charset=Shift_JIS", &japanese[..], "日本", None),
        ("application/json", &latin[..], "café", Some("windows-1252")),
        ("application/json", &number[..], "\\\"NaN\\\"", Some("NaN")),
    ] {
        let own = Behaviour::with_tools(&["look"]);
        *own.result.lock().unwrap() = (kind, result.to_vec());
        let (fleet, own, _serving) = fleet_with(own, calls_once).await;
        let id = fleet.push(&job(&["gull.look"])).await;
        assert_eq!(fleet.settled(&id).await["state"], "completed");
        let prompt = fleet.models.calls()[1].request["messages"].to_string();
        assert!(prompt.contains(seen), "{kind}: {prompt}");
        let events = fleet.events_named(&id, "tool.partly_read").await;
        let reported = events.first().and_then(|event| event["message"].as_str());
        match word {
            Some(word) => assert!(reported.is_some_and(|text| text.contains(word)), "{kind}: {events:#?}"),
            None => assert_eq!(reported, None, "{kind}"),
        }
        assert_eq!(own.count("tools/call"), 1);
        fleet.end().await;
    }
}

/// A server that has forgotten the session has not processed the request: the session is begun again, and the request
/// repeated once.
#[tokio::test]
async fn a_lost_session_is_begun_again() {
    for unknown in [
        (400, "Bad Request: No valid session ID provided"),
        (400, r#"{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}"#),
        (404, "Not Found"),
    ] {
        let own = Behaviour { session: Mutex::new("any".to_owned()), ..Behaviour::with_tools(&["look"]) };
        *own.result.lock().unwrap() =
            ("application/json", br#"{"content":[{"type":"text","text":"sea"}]}"#.to_vec());
        *own.unknown.lock().unwrap() = unknown;
        let (fleet, own, _serving) = fleet_with(own, calls_once).await;
        for run in 1..=2 {
            let id = fleet.push(&job(&["gull.look"])).await;
            assert_eq!(fleet.settled(&id).await["state"], "completed", "{unknown:?}");
            let prompt = fleet.models.calls()[run * 2 - 1].request["messages"].to_string();
            assert!(prompt.contains("sea"), "{unknown:?}: {prompt}");
            let engagement = fleet.engagement_of(&id).await;
            let call =
                fleet.get(&format!("/engagements/{engagement}/tool-calls")).await["tool_calls"][0].clone();
            assert_eq!(call["retries"], 0, "{unknown:?}: {call:#}");
            // The server restarts, and forgets.
            "forgotten".clone_into(&mut own.session.lock().unwrap());
        }
        assert_eq!((own.count("initialize"), own.count("tools/call")), (2, 2), "{unknown:?}");
        fleet.end().await;
    }
}

/// Eight servers start at the same time: none is ready before all have been asked.
#[tokio::test]
async fn servers_of_a_turn_start_at_the_same_time() {
    let mut fleet = Fleet::builder().workers(0).model(|_: &Value| Reply::text("done")).start().await;
    let (mut servers, mut serving, mut names) = (json!({}), Vec::new(), Vec::new());
    let meeting = Arc::new(Barrier::new(8));
    for n in 0..8 {
        let own = Behaviour { meeting: Some(Arc::clone(&meeting)), ..Behaviour::with_tools(&["look"]) };
        let app = Router::new().route("/mcp", post(answered)).with_state(Arc::new(own));
        let (url, handle) = serve(app).await;
        servers[format!("gull{n}")] = json!({"url": format!("{url}/mcp"), "allow_private": true});
        names.push(format!("gull{n}.look"));
        serving.push(handle);
    }
    fleet.add_worker_with(4, |deps| with_servers(deps, &servers));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let id = fleet.push(&job(&names)).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    assert_eq!(model_server::offered(&fleet.models.calls()[0].request).len(), 8);
    fleet.end().await;
}

/// While a server does not answer its list, turns use the one that is known.
#[tokio::test]
async fn the_last_known_list_is_used_while_a_server_is_slow() {
    let (fleet, own, _serving) =
        fleet_with(Behaviour::with_tools(&["look"]), |_: &Value| Reply::text("done")).await;
    let first = fleet.push(&job(&["gull.look"])).await;
    assert_eq!(fleet.settled(&first).await["state"], "completed");
    let gate = Gate::default();
    *own.lists.lock().unwrap() = Some(gate);
    // A list is read again after five minutes.
    fleet.clock.advance_ms(300_000);
    let second = fleet.push(&job(&["gull.look"])).await;
    assert_eq!(fleet.settled(&second).await["state"], "completed");
    assert_eq!(model_server::offered(&fleet.models.calls()[1].request), ["gull_look"]);
    assert_eq!(own.count("tools/list"), 2, "it was asked");
    assert_eq!(resolved(&fleet, &second).await["tools"], json!(["gull.look"]));
    fleet.end().await;
}

/// An HTTP tool's JSON with numbers that JSON does not have is kept as text, with an event.
#[tokio::test]
async fn json_of_a_tool_with_other_numbers_is_kept_as_text() {
    let app = Router::new().route(
        "/look",
        post(|| async { ([(header::CONTENT_TYPE, "application/json")], r#"{"mean": NaN, "count": 3}"#) }),
    );
    let (url, _serving) = serve(app).await;
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("look", json!({})),
        _ => Reply::text("done"),
    };
    let mut fleet = Fleet::builder().workers(0).model(script).start().await;
    let config = json!({"description": "looks", "url": format!("{url}/look"), "allow_private": true});
    let config = BTreeMap::from([("look".to_owned(), serde_json::from_value(config).unwrap())]);
    fleet.add_worker_with(1, |mut deps| {
        deps.toolbox = Toolbox::from_config(&config, Arc::clone(&deps.clock)).unwrap();
        deps
    });
    let id = fleet.push(&job(&["look"])).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed");
    let prompt = fleet.models.calls()[1].request["messages"].to_string();
    assert!(prompt.contains("NaN") && prompt.contains("count"), "{prompt}");
    let events = fleet.events_named(&id, "tool.partly_read").await;
    assert_eq!((events.len(), &events[0]["name"]), (1, &json!("look")), "{events:#?}");
    fleet.end().await;
}
