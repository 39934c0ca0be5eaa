//! A model provider for tests: it implements OpenAI's chat completions over real HTTP and keeps a log.

use crate::wait;
use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures::StreamExt;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// The tokens of a text unless the test sets others: prompt and completion tokens.
const TOKENS: (i64, i64) = (10, 5);

/// An answer of the server.
#[derive(Clone, Debug)]
pub enum Reply {
    /// A text, and its tokens: prompt and completion.
    Text(String, (i64, i64)),
    /// Tool calls, and their tokens.
    Calls(Vec<(String, Value)>, (i64, i64)),
    /// A text, and beside it a tool call with these arguments, which cost 12 + 7 tokens.
    Beside(String, String, Value),
    /// A text with a `usage` of the test's own making; `Null` leaves it out.
    Odd(String, Value),
    /// An HTTP error.
    Status(u16),
    /// An HTTP error with this body.
    Said(u16, Value),
    /// An HTTP error with a `Retry-After` of so many seconds.
    Later(u16, u64),
    /// Nothing, for ever.
    Hang,
    /// This reply, as soon as the gate is open.
    Held(Gate, Box<Reply>),
    /// A text that ends for this reason (`length`, `content_filter` …).
    Ended(String, &'static str),
    /// The first piece of a text at once, the others when the gate is open.
    Spoken(Vec<String>, Gate),
    /// These bytes as an event stream, even if they are none.
    Wire(Vec<u8>),
    /// These bytes so many times under this status, as an event stream, unless the client leaves before.
    Repeated(u16, Vec<u8>, usize),
}

/// Holds answers until it is opened. Clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<watch::Sender<bool>>);

impl Gate {
    /// Opens the gate for good.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits until it is open. An answer behind a gate that no test opens never comes, as with
    /// [`Reply::Hang`]. So this has no deadline, and the test's own waits have one.
    pub async fn passed(&self) {
        self.0.subscribe().wait_for(|open| *open).await.expect("the gate stands as long as it is waited at");
    }
}

impl Reply {
    /// Returns a text that costs 10 + 5 tokens.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into(), TOKENS)
    }

    /// Returns one tool call that costs 12 + 7 tokens.
    pub fn call(name: &str, arguments: Value) -> Self {
        Self::Calls(vec![(name.to_owned(), arguments)], (12, 7))
    }

    /// Puts the reply behind a gate.
    pub fn behind(self, gate: &Gate) -> Self {
        Self::Held(gate.clone(), Box::new(self))
    }

    /// Returns the reply so long after the request, as a real model does. Call it within the script.
    pub fn after(self, time: Duration) -> Self {
        let gate = Gate::default();
        let opened = gate.clone();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            opened.open();
        });
        self.behind(&gate)
    }

    /// Returns the tokens that are reported with it.
    fn reported(&self) -> i64 {
        match self {
            Self::Text(_, (input, output)) | Self::Calls(_, (input, output)) => input + output,
            Self::Held(_, reply) => reply.reported(),
            Self::Beside(..) => 12 + 7,
            Self::Ended(..) | Self::Spoken(..) => TOKENS.0 + TOKENS.1,
            Self::Odd(..)
            | Self::Status(_)
            | Self::Said(..)
            | Self::Later(..)
            | Self::Hang
            | Self::Wire(_)
            | Self::Repeated(..) => 0,
        }
    }
}

/// One request, and the tokens reported for it.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The request body.
    pub request: Value,
    /// Tokens reported with the answer; 0 when none was.
    pub reported: i64,
}

impl ModelCall {
    /// Returns the text of the first user message.
    pub fn input(&self) -> &str {
        let messages = self.request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        messages.iter().find(|m| m["role"] == "user").and_then(|m| m["content"].as_str()).unwrap_or_default()
    }

    /// Returns the number of tool outcomes in the request.
    pub fn outcomes(&self) -> usize {
        outcomes(&self.request)
    }
}

/// Returns the number of tool outcomes in a request.
pub fn outcomes(request: &Value) -> usize {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    messages.iter().filter(|message| message["role"] == "tool").count()
}

/// Returns the newest tool outcome in a request.
pub fn tool_outcome(request: &Value) -> &str {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let last = messages.iter().rev().find(|message| message["role"] == "tool");
    last.and_then(|message| message["content"].as_str()).unwrap_or_default()
}

/// Returns the agent of a request, whose instructions begin with "You are NAME.".
pub fn who(request: &Value) -> &str {
    let text = request["messages"][0]["content"].as_str().unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    line.trim_start_matches("You are ").trim_end_matches('.')
}

/// Calls `book` once, for a price of 640.
pub fn booking(request: &Value) -> Reply {
    match outcomes(request) {
        0 => Reply::call("book", json!({"price": 640})),
        _ => Reply::text("booked"),
    }
}

/// Calls `search` in two turns and `book` in the third.
pub fn trip(request: &Value) -> Reply {
    match outcomes(request) {
        n @ (0 | 1) => Reply::call("search", json!({"q": n})),
        2 => Reply::call("book", json!({"seat": 1})),
        _ => Reply::text("booked"),
    }
}

/// Makes the calls of these turns, one turn after another.
pub fn calls(turns: Vec<Vec<(&'static str, Value)>>) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| {
        let done = outcomes(request);
        let mut before = 0;
        for turn in &turns {
            if before == done {
                let calls = turn.iter().map(|(name, arguments)| ((*name).to_owned(), arguments.clone()));
                return Reply::Calls(calls.collect(), (12, 7));
            }
            before += turn.len();
        }
        Reply::text("done")
    }
}

/// Returns the names of the tools that a request offers to the model.
pub fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

/// Returns the text of the newest user message of a request.
pub fn newest(request: &Value) -> &str {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let user = messages.iter().rev().find(|message| message["role"] == "user");
    user.and_then(|message| message["content"].as_str()).unwrap_or_default()
}

type Script = dyn Fn(&Value) -> Reply + Send + Sync;

struct Shared {
    script: Box<Script>,
    headers: Mutex<Vec<HeaderMap>>,
    log: Mutex<Vec<ModelCall>>,
    count: watch::Sender<usize>,
    abandoned: AtomicUsize,
}

/// Counts a request whose client closes the connection before the answer.
struct Unanswered<'a> {
    abandoned: &'a AtomicUsize,
    waits: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.abandoned.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// The server. It stops when it is dropped.
pub struct ModelServer {
    /// The base URL to configure: `http://127.0.0.1:…/v1`.
    pub url: String,
    shared: Arc<Shared>,
    _serving: AbortOnDropHandle<()>,
}

impl ModelServer {
    /// Starts a server that answers each request with the result of `script`.
    pub async fn start(script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let shared = Arc::new(Shared {
            script: Box::new(script),
            headers: Mutex::default(),
            log: Mutex::default(),
            count: watch::channel(0).0,
            abandoned: AtomicUsize::new(0),
        });
        let router =
            Router::new().route("/v1/chat/completions", post(complete)).with_state(Arc::clone(&shared));
        let (url, serving) = crate::http::serve(router).await;
        let url = format!("{url}/v1");
        Self { url, shared, _serving: serving }
    }

    /// Returns every request so far.
    pub fn calls(&self) -> Vec<ModelCall> {
        self.log().clone()
    }

    /// Returns the headers of every request so far.
    pub fn headers(&self) -> Vec<HeaderMap> {
        self.shared.headers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of requests so far.
    pub fn count(&self) -> usize {
        *self.shared.count.borrow()
    }

    /// Returns the number of requests whose client closed the connection before the answer.
    pub fn abandoned(&self) -> usize {
        self.shared.abandoned.load(Ordering::SeqCst)
    }

    /// Waits until the server has seen `count` requests.
    ///
    /// # Panics
    /// When it has seen fewer after [`wait::PATIENCE`].
    pub async fn seen(&self, count: usize) {
        self.seen_within(count, wait::PATIENCE).await;
    }

    /// Waits in the same way with a deadline of its own.
    pub async fn seen_within(&self, count: usize, patience: Duration) {
        let mut counter = self.shared.count.subscribe();
        let seen = wait::ends(patience, counter.wait_for(|seen| *seen >= count)).await.is_some();
        assert!(seen, "the model was asked {} times and not {count} times in {patience:?}", self.count());
    }

    fn log(&self) -> MutexGuard<'_, Vec<ModelCall>> {
        self.shared.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> Response {
    // The server drops this future when the client closes the connection.
    let mut unanswered = Unanswered { abandoned: &shared.abandoned, waits: true };
    let response = answer(&shared, headers, request).await;
    unanswered.waits = false;
    response
}

async fn answer(shared: &Shared, headers: HeaderMap, request: Value) -> Response {
    shared.headers.lock().unwrap_or_else(PoisonError::into_inner).push(headers);
    let reply = (shared.script)(&request);
    let reported = reply.reported();
    {
        let mut log = shared.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(ModelCall { request: request.clone(), reported });
        shared.count.send_replace(log.len());
    }
    let reply = match reply {
        Reply::Held(gate, reply) => {
            gate.passed().await;
            *reply
        }
        reply => reply,
    };
    let usage = |(input, output): (i64, i64)| json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    match reply {
        // A gate behind a gate is never reached.
        Reply::Hang | Reply::Held(..) => std::future::pending().await,
        Reply::Status(status) => failed(status),
        Reply::Said(status, body) => {
            (StatusCode::from_u16(status).expect("a status"), Json(body)).into_response()
        }
        Reply::Later(status, seconds) => {
            ([(header::RETRY_AFTER, seconds.to_string())], failed(status)).into_response()
        }
        Reply::Text(text, tokens) => {
            stream(&request, json!({"role": "assistant", "content": text}), "stop", &usage(tokens))
        }
        Reply::Odd(text, usage) => {
            stream(&request, json!({"role": "assistant", "content": text}), "stop", &usage)
        }
        Reply::Ended(text, finish) => {
            stream(&request, json!({"role": "assistant", "content": text}), finish, &usage(TOKENS))
        }
        Reply::Wire(bytes) => events(Body::from(bytes)),
        Reply::Repeated(status, bytes, times) => {
            let piece = Bytes::from(bytes);
            let pieces = (0..times).map(move |_| Ok::<_, std::convert::Infallible>(piece.clone()));
            let body = events(Body::from_stream(futures::stream::iter(pieces)));
            (StatusCode::from_u16(status).expect("a status"), body).into_response()
        }
        Reply::Spoken(pieces, gate) => events(speaking(&request, &pieces, gate, &usage(TOKENS))),
        Reply::Beside(text, name, arguments) => {
            let call = json!({"index": 0, "id": "c0", "type": "function",
                              "function": {"name": name, "arguments": arguments.to_string()}});
            let said = json!({"role": "assistant", "content": text, "tool_calls": [call]});
            stream(&request, said, "tool_calls", &usage((12, 7)))
        }
        Reply::Calls(calls, tokens) => {
            let calls: Vec<Value> = calls
                .iter()
                .enumerate()
                .map(|(index, (name, arguments))| {
                    json!({"index": index, "id": format!("c{index}"), "type": "function",
                           "function": {"name": name, "arguments": arguments.to_string()}})
                })
                .collect();
            stream(&request, json!({"role": "assistant", "tool_calls": calls}), "tool_calls", &usage(tokens))
        }
    }
}

fn failed(status: u16) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, Json(json!({"error": {"message": "the script says so"}}))).into_response()
}

/// Returns one chunk of a stream.
fn chunk(request: &Value, choices: Value, usage: &Value) -> String {
    let chunk = json!({"id": "x", "object": "chat.completion.chunk", "created": 0, "model": request["model"],
                       "choices": choices, "usage": usage});
    format!("data: {chunk}\n\n")
}

fn events(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

/// Returns the end of a stream.
fn ending(request: &Value, finish: &str, usage: &Value) -> String {
    let mut text = chunk(request, json!([{"index": 0, "delta": {}, "finish_reason": finish}]), &Value::Null);
    if !usage.is_null() {
        text += &chunk(request, json!([]), usage);
    }
    text + "data: [DONE]\n\n"
}

fn stream(request: &Value, delta: Value, finish: &str, usage: &Value) -> Response {
    let choices = json!([{"index": 0, "delta": delta, "finish_reason": null}]);
    events(Body::from(chunk(request, choices, &Value::Null) + &ending(request, finish, usage)))
}

/// Returns a text whose first piece comes at once.
fn speaking(request: &Value, pieces: &[String], gate: Gate, usage: &Value) -> Body {
    let said = |text: &String| {
        chunk(request, json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]), &Value::Null)
    };
    let (first, rest) = pieces.split_at(1.min(pieces.len()));
    let first: String = first.iter().map(said).collect();
    let rest: String = rest.iter().map(said).collect::<String>() + &ending(request, "stop", usage);
    let rest = futures::stream::once(async move {
        gate.passed().await;
        Ok::<_, std::convert::Infallible>(rest)
    });
    Body::from_stream(futures::stream::iter([Ok(first)]).chain(rest))
}
