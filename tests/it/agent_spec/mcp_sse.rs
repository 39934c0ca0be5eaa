//! MCP servers behind `SSETransport`: the older HTTP transport, one stream of events and a POST for each message.

use super::{awaiting, part, property, result, run};
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::StreamExt;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio_util::task::AbortOnDropHandle;
use turnstone_tests::{Fleet, Reply, model_server};

/// A server with the tool `echo`, which names this endpoint for messages.
#[derive(Default)]
struct Parrot {
    endpoint: String,
    stream: Mutex<Option<UnboundedSender<String>>>,
    keys: Mutex<Vec<String>>,
}

impl Parrot {
    async fn start(endpoint: &str) -> (Arc<Self>, String, AbortOnDropHandle<()>) {
        let parrot = Arc::new(Self { endpoint: endpoint.to_owned(), ..Self::default() });
        let app = Router::new()
            .route("/sse", get(events))
            .route("/messages", post(message))
            .with_state(Arc::clone(&parrot));
        let (url, serving) = turnstone_tests::http::serve(app).await;
        let url = format!("{url}/sse");
        (parrot, url, serving)
    }
}

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

async fn events(State(parrot): State<Arc<Parrot>>) -> Response {
    let (sender, receiver) = unbounded_channel();
    sender.send(event("endpoint", &parrot.endpoint)).unwrap();
    *parrot.stream.lock().unwrap() = Some(sender);
    let pieces =
        futures::stream::unfold(receiver, |mut receiver| async { Some((receiver.recv().await?, receiver)) });
    let body = axum::body::Body::from_stream(pieces.map(Ok::<_, std::io::Error>));
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

async fn message(State(parrot): State<Arc<Parrot>>, headers: HeaderMap, body: String) -> StatusCode {
    let call: Value = serde_json::from_str(&body).unwrap();
    let key = headers.get("x-key").and_then(|value| value.to_str().ok()).unwrap_or_default();
    parrot.keys.lock().unwrap().push(key.to_owned());
    let result = match call["method"].as_str().unwrap() {
        "initialize" => json!({"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                               "serverInfo": {"name": "parrot", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "echo", "description": "Says it again.", "inputSchema":
            {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}}]}),
        "tools/call" => {
            json!({"content": [{"type": "text", "text": format!("polly: {}", call["params"]["arguments"]["text"].as_str().unwrap())}]})
        }
        _ => return StatusCode::ACCEPTED,
    };
    let answer = json!({"jsonrpc": "2.0", "id": call["id"], "result": result}).to_string();
    let sender = parrot.stream.lock().unwrap().clone().unwrap();
    sender.send(event("message", &answer)).unwrap();
    StatusCode::ACCEPTED
}

fn transport(url: &str) -> Value {
    part("SSETransport", "way", json!({"url": url, "sensitive_headers": {"x-key": "hush"}}))
}

fn agent(fleet: &Fleet, url: &str) -> Value {
    let boxes = [part("MCPToolBox", "box", json!({"client_transport": transport(url)}))];
    let fields = json!({"llm_config": super::llm(fleet), "system_prompt": "You echo.", "toolboxes": boxes});
    part("Agent", "desk", fields)
}

/// AGS-34: the tools of a server behind `SSETransport` are called by an agent and by a node, with the headers of the
/// document.
#[tokio::test]
async fn sse_transport_carries_messages_both_ways() {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("echo", json!({"text": "hello"})),
        _ => Reply::text("done"),
    };
    let fleet = Fleet::builder().model(script).start().await;
    let (parrot, url, _serving) = Parrot::start("/messages?session=1").await;
    let job = run(&fleet, agent(&fleet, &url), json!({})).await;
    assert_eq!(awaiting(&fleet, &job).await["prompt"], "done", "{job:#}");
    let heard = fleet.models.calls().pop().unwrap().request["messages"].to_string();
    assert!(heard.contains("polly: hello"), "{heard}");
    let (text, reply) = (property("text", "string"), property("reply", "string"));
    let fields = json!({"client_transport": transport(&url), "description": "Says it again.", "inputs": [text],
                        "outputs": [reply]});
    let nodes = [
        super::start("start", std::slice::from_ref(&text)),
        part("ToolNode", "call", json!({"tool": part("MCPTool", "echo", fields)})),
        super::end("end", std::slice::from_ref(&reply)),
    ];
    let control = [super::then("start", "call"), super::then("call", "end")];
    let ended = result(&fleet, super::flow("calling", &nodes, &control, &[]), json!({"text": "again"})).await;
    assert_eq!(ended["outputs"]["reply"], "polly: again", "{ended:#}");
    assert!(parrot.keys.lock().unwrap().iter().all(|key| key == "hush"));
    fleet.end().await;
}

/// AGS-34: messages, and with them secrets, go to no other origin than that of the stream.
#[tokio::test]
async fn sse_endpoint_of_another_origin_is_refused() {
    let fleet = Fleet::builder().start().await;
    let (parrot, url, _serving) = Parrot::start("http://127.0.0.1:9/messages").await;
    let job = run(&fleet, agent(&fleet, &url), json!({})).await;
    assert!(job["error"]["message"].to_string().contains("another origin"), "{job:#}");
    assert!(parrot.keys.lock().unwrap().is_empty());
    fleet.end().await;
}
