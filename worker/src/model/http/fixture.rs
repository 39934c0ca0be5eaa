//! A provider's server for tests: it answers every request as the test demands, and records the requests.

use super::{Api, HttpModel};
use crate::model::{Listener, ModelAnswer, ModelRequest, ToolOffer};
use crate::served::serve;
use crate::tool::outbound;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::{StreamExt, stream};
use serde_json::{Value, json};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;
use turnstone_domain::agent::{OutputContract, OutputFormat, ToolChoice};
use turnstone_domain::message::{Message, RequestedCall, Role};

/// A request: path, headers, body.
pub type Seen = (String, HeaderMap, Value);

/// The server. It stops when it is dropped.
pub struct Server {
    /// Ends with a slash, as many configurations do.
    pub base_url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Server {
    /// Starts a server that answers every request with the result of `answer`.
    pub async fn start<A, F>(answer: A) -> Self
    where
        A: Fn() -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response> + Send,
    {
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let respond = move |State(seen): State<Arc<Mutex<Vec<Seen>>>>,
                            uri: Uri,
                            headers: HeaderMap,
                            body: Bytes| async move {
            let request = (uri.path().to_owned(), headers, serde_json::from_slice(&body).unwrap());
            seen.lock().unwrap().push(request);
            answer().await
        };
        let app = Router::new().route("/v1/{*path}", post(respond)).with_state(Arc::clone(&seen));
        let (address, _serving) = serve(app).await;
        Self { base_url: format!("http://{address}/v1/"), seen, _serving }
    }

    /// Returns request number `nth`, from 0.
    pub fn seen(&self, nth: usize) -> Seen {
        self.seen.lock().unwrap()[nth].clone()
    }
}

/// Returns a question with one tool on offer.
pub fn request() -> ModelRequest {
    ModelRequest {
        model: "m".into(),
        system: String::new(),
        messages: vec![Message::text(Role::User, "weather?").into()],
        tools: vec![ToolOffer {
            name: "get.weather".into(),
            description: "d".into(),
            input_schema: json!({"type": "object"}),
        }],
        tool_choice: ToolChoice::Auto,
        temperature: None,
        top_p: None,
        frequency_penalty: None,
        presence_penalty: None,
        max_tokens: 100,
        unbounded: false,
        output: OutputContract::default(),
        timeout: Duration::from_secs(20),
        listener: Listener::default(),
    }
}

/// Returns a listener, and the texts that it received.
pub fn listener() -> (Listener, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&heard);
    (Listener::new(move |text| noted.lock().unwrap().push(text.to_owned())), heard)
}

/// Returns an event stream.
pub fn events(body: impl Into<Body>) -> Response {
    ([("content-type", "text/event-stream; charset=utf-8")], body.into()).into_response()
}

/// Starts a server that replays an answer: an event stream cut at arbitrary bytes, or a JSON document.
pub async fn replay(status: u16, sample: &'static str) -> Server {
    Server::start(move || async move {
        match sample.starts_with('{') {
            true => document(status, sample),
            false => events(pieces(sample, 11)),
        }
    })
    .await
}

/// Returns the provider of this API at a server, with these settings.
pub fn provider(server: &Server, api: Box<dyn Api>, mut settings: Value) -> HttpModel {
    settings["base_url"] = server.base_url.as_str().into();
    let config = serde_json::from_value(settings).unwrap();
    HttpModel::new("local", api, config, outbound::open_client().unwrap()).unwrap()
}

/// Returns the conversation of the recorded requests. It holds a successful call, a call whose arguments were
/// no JSON, and a message of the runtime.
pub fn tides() -> ModelRequest {
    let call =
        |id: &str, arguments: Value| RequestedCall { call_id: id.into(), name: "get.tide".into(), arguments };
    let schema = json!({"type": "object", "properties": {"low": {"type": "string"}}, "required": ["low"]});
    ModelRequest {
        system: "You know the tides.".into(),
        messages: vec![
            Message::text(Role::User, "When is low tide?").into(),
            Arc::new(Message {
                tool_calls: vec![call("c1", json!({"harbour": "Husum"})), call("c2", json!("{cut"))],
                ..Message::text(Role::Assistant, "I look it up.")
            }),
            Message::tool("c1".into(), "14:07").into(),
            Message::tool("c2".into(), "refused").into(),
            Message::text(Role::System, "Answer in JSON.").into(),
        ],
        tools: vec![ToolOffer {
            name: "get.tide".into(),
            description: "Tides of a harbour.".into(),
            input_schema: json!({"type": "object", "properties": {"harbour": {"type": "string"}}}),
        }],
        temperature: Some(0.25),
        output: OutputContract { schema: Some(schema), format: OutputFormat::Json },
        ..request()
    }
}

/// Returns a question with a picture by its bytes, one by its address, a document and a text file.
pub fn pictures() -> ModelRequest {
    let image = |kind: &str, data: &str| json!({"type": "image", "source": {"type": kind, "media_type": "image/png", "data": data}});
    let parts = json!([
        {"type": "text", "text": "Which bird is it?"},
        image("base64", "aGk="),
        image("url", "https://birds.example/1.png"),
        {"type": "file", "name": "birds.pdf", "content": "JVBERg==", "media_type": "application/pdf"},
        {"type": "file", "name": "birds.csv", "content": "turnstone;2", "media_type": "text/csv"},
    ]);
    let parts = serde_json::from_value(parts).unwrap();
    ModelRequest { messages: vec![Message::of_parts(Role::User, parts).into()], ..request() }
}

/// Returns a call of a tool and its outcome with a picture.
pub fn picture_of_a_tool() -> ModelRequest {
    let parts = json!([
        {"type": "text", "text": "seen"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    ]);
    let call =
        RequestedCall { call_id: "c1".into(), name: "get.tide".into(), arguments: json!({"harbour": "A"}) };
    let requested = Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") };
    let parts = serde_json::from_value(parts).unwrap();
    let outcome = Message { parts, ..Message::tool("c1".into(), "seen") };
    let messages = [Message::text(Role::User, "Look."), requested, outcome].map(Arc::new);
    ModelRequest { messages: messages.into(), ..request() }
}

/// Returns an answer as JSON, to compare providers: their recorded answers say the same in their own formats.
/// They are a text with cached and reasoning tokens, two calls, an answer that was cut, and one that was
/// withheld. One of the calls is cut and repeats the id.
pub fn summary(answer: &ModelAnswer) -> Value {
    let calls = answer.tool_calls.iter().map(|call| json!([call.name, call.arguments]));
    let usage = answer.usage.map(|usage| [usage.input, usage.cached_input, usage.output, usage.reasoning]);
    json!([answer.content, calls.collect::<Value>(), answer.finish_reason, usage, answer.model])
}

/// Returns a JSON document with a status.
pub fn document(status: u16, json: &'static str) -> Response {
    let status = axum::http::StatusCode::from_u16(status).unwrap();
    (status, [("content-type", "application/json")], json).into_response()
}

/// Returns a body that sends `text` in pieces of `size` bytes, which may cut characters.
pub fn pieces(text: impl Into<Vec<u8>>, size: usize) -> Body {
    let bytes: Vec<u8> = text.into();
    let chunks: Vec<Result<Bytes, io::Error>> =
        bytes.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    Body::from_stream(stream::iter(chunks))
}

/// Returns a body that breaks off after `text`.
pub fn broken(text: impl Into<Bytes>) -> Body {
    let lost = stream::once(async {
        // One pause, in which the server sends its buffer.
        tokio::task::yield_now().await;
        Err(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    Body::from_stream(stream::iter([Ok(text.into())]).chain(lost))
}
