//! Hostile tools and models against the whole program: bounded memory, the right code, and a run that continues or
//! ends as specified (issue 5, "Bad input"; RS-22, RS-23). A state key of 1 MB is in `session_state.rs`, documents
//! are in `bad_input.rs`.

use super::Dev;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::routing::any;
use serde_json::{Value, json};
use std::path::Path;
use turnstone_tests::{ModelServer, Reply, model_server};

const MEGABYTE: usize = 1 << 20;
/// The most memory that a hostile answer may cost, in bytes: far less than its length.
const MOST: u64 = 48 * 1024 * 1024;

/// Four tools: 100 MB, invalid UTF-8, a redirect to the metadata service, and an answer that never comes.
async fn tools() -> (String, tokio_util::task::AbortOnDropHandle<()>) {
    let flood = || async {
        let piece = Bytes::from(vec![b'x'; MEGABYTE]);
        Body::from_stream(futures::stream::iter(
            (0..100).map(move |_| Ok::<_, std::io::Error>(piece.clone())),
        ))
    };
    let away = || async { (StatusCode::FOUND, [("location", "http://169.254.169.254/latest/meta-data")]) };
    let router = Router::new()
        .route("/flood", any(flood))
        .route("/bytes", any(|| async { Body::from(b"\xff\xfe\x80".to_vec()) }))
        .route("/away", any(away))
        .route("/never", any(std::future::pending::<StatusCode>))
        .route("/fine", any(|| async { "well" }));
    let (url, serving) = turnstone_tests::http::serve(router).await;
    (url, serving)
}

/// A stream of these calls: name, id, and raw arguments.
fn asking(calls: &[(&str, &str, &str)]) -> Reply {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (name, id, arguments))| {
            json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        })
        .collect();
    let piece =
        |choice: Value, usage: Value| format!("data: {}\n\n", json!({"choices": choice, "usage": usage}));
    let delta =
        json!([{"index": 0, "delta": {"role": "assistant", "tool_calls": calls}, "finish_reason": null}]);
    let end = json!([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]);
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let text =
        piece(delta, Value::Null) + &piece(end, Value::Null) + &piece(json!([]), usage) + "data: [DONE]\n\n";
    Reply::Wire(text.into_bytes())
}

/// The user's input selects the model's calls.
fn script(request: &Value) -> Reply {
    let call = model_server::ModelCall { request: request.clone(), reported: 0 };
    if call.outcomes() > 0 {
        return Reply::text("it continued");
    }
    match call.input() {
        "unknown tool" => asking(&[("no_such_tool", "a", "{}")]),
        "an id twice" => asking(&[("fine", "same", "{}"), ("fine", "same", "{}")]),
        "no JSON" => asking(&[("fine", "a", "{\"n\": ")]),
        "length" => Reply::Ended("It was a dark and".to_owned(), "length"),
        "10 MB" => {
            let said = json!({"choices": [{"index": 0, "delta": {"content": "y".repeat(MEGABYTE)}}]});
            Reply::Wire(format!("data: {said}\n\n").repeat(10).into_bytes())
        }
        tool => asking(&[(tool, "a", "{}")]),
    }
}

fn set_up(folder: &Path, tools: &str, models: &str) {
    let mut settings = format!(
        "[providers.test]\nkind = 'openai'\nbase_url = '{models}'\n[models]\ndefault_provider = 'test'\ndefault_model = 'm'\n"
    );
    for name in ["flood", "bytes", "away", "never", "fine"] {
        // Only the tool that never answers needs a short timeout.
        let timeout_ms = if name == "never" { 2000 } else { 20_000 };
        settings += &format!(
            "[tools.{name}]\ndescription = 'A tool'\nurl = '{tools}/{name}'\nallow_private = true\nidempotent = true\n\
             timeout_ms = {timeout_ms}\n"
        );
    }
    std::fs::write(folder.join("turnstone.toml"), settings).unwrap();
}

/// Returns the peak memory of the program, in bytes.
fn peak(dev: &Dev) -> u64 {
    dev.program.memory("VmHWM").unwrap()
}

/// Runs one job to its end and returns it.
async fn run(dev: &Dev, input: &str) -> Value {
    let tools: Vec<Value> =
        ["flood", "bytes", "away", "never", "fine"].iter().map(|name| json!({"name": name})).collect();
    let job = json!({"type": "agent.x", "args": [input], "ext_agent_tools": tools,
                     "options": {"retry": {"max_attempts": 1}}});
    let url = format!("{}/ojs/v1/jobs", dev.url);
    let answer: Value = dev.http.post(url).json(&job).send().await.unwrap().json().await.unwrap();
    let id = answer["job"]["id"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned();
    dev.events(&id, |name, _| ["job.completed", "job.discarded", "job.parked"].contains(&name)).await;
    dev.get(&format!("/ojs/v1/jobs/{id}")).await["job"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: hundreds of megabytes of answers"]
async fn hostile_tools_and_models_cost_no_memory_and_have_their_codes() {
    let (tools, _serving) = tools().await;
    let models = ModelServer::start(script).await;
    let folder = turnstone_tests::scratch::folder();
    set_up(folder.path(), &tools, &models.url);
    let dev = Dev::start(folder.path(), &[]).await;
    assert_eq!(run(&dev, "fine").await["state"], "completed");
    let mut before = peak(&dev);
    for (input, code, words) in [
        ("flood", None, "larger than 1048576 bytes"),
        ("10 MB", Some("OSSA_LLM_ERROR"), ""),
        ("bytes", None, "neither JSON nor text"),
        ("away", None, "not followed"),
        ("never", None, "within 2000 ms"),
        ("unknown tool", None, "no_such_tool"),
        ("an id twice", None, "well"),
        ("no JSON", None, "SCHEMA_VIOLATION"),
        ("length", Some("OSSA_MAX_TOKENS_EXCEEDED"), ""),
    ] {
        let done = run(&dev, input).await;
        let after = peak(&dev);
        assert!(after < before + MOST, "{input}: {} bytes more", after - before);
        before = after;
        if let Some(code) = code {
            assert_eq!(
                (&done["state"], &done["error"]["code"]),
                (&json!("discarded"), &json!(code)),
                "{input}: {done:#}"
            );
            continue;
        }
        assert_eq!(
            (&done["state"], &done["result"]),
            (&json!("completed"), &json!("it continued")),
            "{input}: {done:#}"
        );
        let calls = models.calls();
        let messages = calls.last().unwrap().request["messages"].as_array().unwrap().clone();
        let outcomes: Vec<&Value> = messages.iter().filter(|message| message["role"] == "tool").collect();
        assert!(
            outcomes.iter().all(|outcome| outcome["content"].as_str().unwrap().contains(words)),
            "{input}: {outcomes:#?}"
        );
        let mut ids: Vec<&str> =
            outcomes.iter().map(|outcome| outcome["tool_call_id"].as_str().unwrap()).collect();
        ids.dedup();
        assert_eq!(
            ids.len(),
            if input == "an id twice" { 2 } else { 1 },
            "{input}: an outcome for each call"
        );
    }
    dev.program.stop().await;
}
