//! `examples/agent_client.py` against the real program, which is killed while it streams.

use crate::program::Program;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use tokio::process::Command;
use turnstone_tests::servers::{Port, need_python};
use turnstone_tests::{Gate, ModelServer, Reply, ToolServer, model_server, wait};

/// The program in a folder of its own, with the lead and the scout, and a model that a gate can hold back.
struct Site {
    folder: tempfile::TempDir,
    models: ModelServer,
    _tools: ToolServer,
}

impl Site {
    async fn new(script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let (models, tools) = (ModelServer::start(script).await, ToolServer::start().await);
        let folder = turnstone_tests::scratch::folder();
        let toml = format!(
            "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n\
             [tools.book]\ndescription = 'Books.'\nmethod = 'POST'\nurl = '{}/book'\nidempotent = true\n\
             allow_private = true\ninput_schema = '{{\"type\": \"object\"}}'\n",
            models.url, tools.url
        );
        std::fs::write(folder.path().join("turnstone.toml"), toml).unwrap();
        Self { folder, models, _tools: tools }
    }

    async fn open(&self, bind: &str) -> (Program, String) {
        let mut program = Program::start(self.folder.path(), &["dev", "--data", "data", "--bind", bind], &[]);
        let url = program.first_line("turnstone listens on ").await;
        (program, url)
    }
}

async fn register(url: &str) {
    turnstone_tests::http::register(url, super::SCOUT).await;
    turnstone_tests::http::register(url, super::LEAD).await;
}

fn client(url: &str, words: &[&str]) -> Command {
    need_python();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/agent_client.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(url).args(words).env("no_proxy", "*").stdout(Stdio::piped()).kill_on_drop(true);
    command
}

async fn said(url: &str, words: &[&str]) -> Vec<Value> {
    let output = wait::output("a client ends", client(url, words).output()).await.unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    lines(&output.stdout)
}

fn lines(stdout: &[u8]) -> Vec<Value> {
    String::from_utf8_lossy(stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the parts of the events that are equal in every run of the same story.
fn story(events: &[Value]) -> Vec<Value> {
    let of = |event: &Value| {
        json!([
            event["id"],
            event["type"],
            event["agent"],
            event["depth"],
            event["role"],
            event["content"],
            event["text_result"],
            event["finish_reason"],
            event["result"]
        ])
    };
    events.iter().map(of).collect()
}

/// The documented flows of a client: describe, configure, chat, continue a run, list runs and their events, stream,
/// cancel.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn the_client_goes_through_the_flows() {
    let site = Site::new(super::script).await;
    let (program, url) = site.open("127.0.0.1:0").await;
    register(&url).await;
    assert_eq!(said(&url, &["agents"]).await[0][0]["path"], "/agents/lead");
    assert_eq!(said(&url, &["lead", "describe"]).await[0]["operations"][0]["name"], "chat");
    let configured = said(&url, &["lead", "configure", "max_tokens=321"]).await;
    assert_eq!(configured[0]["finish_reason"], "success");
    let first = said(&url, &["lead", "chat", "go"]).await;
    let end = first.last().unwrap();
    assert_eq!((&end["type"], &end["result"]), (&json!("request_completed"), &json!("done")));
    assert!(site.models.calls().iter().any(|call| call.request["max_tokens"] == 321));
    let run = end["run_id"].as_str().unwrap();
    let second = said(&url, &["lead", "chat", "and now?", "--run", run]).await;
    assert_eq!(second[0]["id"].as_i64(), end["id"].as_i64().map(|id| id + 1), "numbers continue over a run");
    let listed = said(&url, &["lead", "runs"]).await;
    assert_eq!((listed[0].as_array().unwrap().len(), &listed[0][0]["run_id"]), (1, &json!(run)));
    let all = said(&url, &["lead", "events", run]).await;
    let both: Vec<Value> = first.iter().chain(&second).cloned().collect();
    assert_eq!(all[0], Value::Array(both));
    let streamed = said(&url, &["lead", "stream", "go"]).await;
    assert_eq!(story(&streamed), story(&first), "the same in one call");
    let cancelled = said(&url, &["lead", "cancel", end["request_id"].as_str().unwrap()]).await;
    assert_eq!(&cancelled[0], end, "an ended request keeps its end");
    program.stop().await;
}

/// The client and the command save an announced file; the command overwrites no file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn the_client_and_the_command_save_a_file() {
    let site = Site::new(|request| match model_server::outcomes(request) {
        0 => Reply::call(
            "save-artifact",
            json!({"name": "plan.md", "media_type": "text/markdown", "content": "# Plan"}),
        ),
        _ => Reply::text("see plan.md"),
    })
    .await;
    let (program, url) = site.open("127.0.0.1:0").await;
    let document = "kind: \"openagentspec:v1/agent\"\nname: writer\ndescription: Writes.\nintent: You are writer.\nowner: tests\n\
                    capabilities: {save-artifact: {user_identity: false}}\n";
    let http = turnstone_tests::http::client();
    let sent =
        http.post(format!("{url}/agents")).header("content-type", "application/yaml").body(document).send();
    assert!(sent.await.unwrap().status().is_success());
    let events = said(&url, &["writer", "chat", "go"]).await;
    let file = events.iter().find(|event| event["type"] == "artifact_generated").expect("an artifact");
    let (run, id) = (file["run_id"].as_str().unwrap(), file["artifact_id"].as_str().unwrap());
    let to = site.folder.path().join("saved");
    let saved = said(&url, &["writer", "artifacts", run, "--to", to.to_str().unwrap()]).await;
    assert_eq!(saved[0][0]["mime_type"], "text/markdown", "{saved:#?}");
    assert_eq!(std::fs::read_to_string(to.join("plan.md")).unwrap(), "# Plan");

    let command = async |more: &[&str]| {
        let mut command = Command::new(turnstone_tests::binaries::turnstone());
        let command = crate::program::without_environment(&mut command).current_dir(site.folder.path());
        command.args(["--url", &url, "engagement", "artifacts", run]).args(more).output().await.unwrap()
    };
    let listed = command(&["-o", "ids"]).await;
    assert_eq!(String::from_utf8_lossy(&listed.stdout).trim(), id);
    for (more, code) in [(&[][..], 0), (&[], 1), (&["--force"], 0), (&["--to", "other.md"], 0)] {
        let saved = command(&[&["--save", id], more].concat()).await;
        assert_eq!(saved.status.code(), Some(code), "{more:?}: {}", String::from_utf8_lossy(&saved.stderr));
    }
    for name in ["plan.md", "other.md"] {
        assert_eq!(std::fs::read_to_string(site.folder.path().join(name)).unwrap(), "# Plan");
    }
    program.stop().await;
}

/// The API process and the worker are killed in the middle of a stream. The client resumes after its last event and
/// ends with the same sequence as an undisturbed one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn a_stream_survives_the_death_of_api_and_worker() {
    for how in ["chat", "stream"] {
        killed_in_the_middle(how).await;
    }
}

async fn killed_in_the_middle(how: &str) {
    let gate = Gate::default();
    let held = gate.clone();
    let site = Site::new(move |request| {
        let scouts = request["messages"].to_string().contains("You are scout");
        let reply = super::script(request);
        // The scout's second answer is held back until the first program is killed.
        if scouts && model_server::outcomes(request) == 1 { reply.behind(&held) } else { reply }
    })
    .await;
    // The program comes back on the same port.
    let port = Port::reserve();
    let bind = port.addr().to_string();
    let (mut program, url) = site.open(&bind).await;
    register(&url).await;
    let client = client(&url, &["lead", how, "go"]).spawn().unwrap();
    site.models.seen(4).await;
    program.signal("KILL");
    program.ended().await;
    drop(program);
    gate.open();
    let (program, _) = site.open(&bind).await;
    let output = wait::output("the client ends", client.wait_with_output()).await.unwrap();
    assert!(output.status.success());
    let disturbed = lines(&output.stdout);
    let whole = said(&url, &["lead", "chat", "go"]).await;
    assert_eq!(story(&disturbed), story(&whole), "{how}");
    assert_eq!(disturbed.last().unwrap()["finish_reason"], "success");
    program.stop().await;
}

/// An agent that asks its user twice for the same key, and then reports how often it asked.
const ASKER: &str = r#"
kind: "openagentspec:v1/agent"
name: asker
description: An agent that asks.
intent: You are asker.
owner: tests
capabilities: {ask-user: {}}
"#;

fn asking(request: &Value) -> Reply {
    match model_server::outcomes(request) {
        0 => Reply::call("ask-user", json!({"question": "May I?"})),
        1 => Reply::call("ask-user", json!({"question": "Really?"})),
        _ => Reply::text("done"),
    }
}

/// Humans in the loop: the server dies after the first answer. The client resumes, receives one more question, and
/// each question keeps its own answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn answers_survive_the_death_of_the_server() {
    let gate = Gate::default();
    let held = gate.clone();
    let site = Site::new(move |request| {
        let reply = asking(request);
        // The model call after the first answer is held back until the first program is killed.
        if model_server::outcomes(request) == 1 { reply.behind(&held) } else { reply }
    })
    .await;
    let port = Port::reserve();
    let bind = port.addr().to_string();
    let (mut program, url) = site.open(&bind).await;
    turnstone_tests::http::register(&url, ASKER).await;
    let chatting = client(&url, &["asker", "chat", "go", "--answer", "answer=yes"]).spawn().unwrap();
    site.models.seen(2).await;
    program.signal("KILL");
    program.ended().await;
    drop(program);
    gate.open();
    let (program, url) = site.open(&bind).await;
    let output = wait::output("the client ends", chatting.wait_with_output()).await.unwrap();
    assert!(output.status.success());
    let events = lines(&output.stdout);
    let ids: Vec<i64> = events.iter().map(|event| event["id"].as_i64().unwrap()).collect();
    assert_eq!(ids, (1..=i64::try_from(events.len()).unwrap()).collect::<Vec<_>>(), "{events:#?}");
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    let (requested, answered) = (of("wait_for_input"), of("tool_result"));
    assert_eq!((requested.len(), answered.len()), (2, 2), "{events:#?}");
    for (question, answer) in requested.iter().zip(&answered) {
        assert_eq!(question["call_id"], answer["call_id"]);
        assert_eq!(answer["text_result"], r#"{"answer":"yes"}"#);
    }
    assert_eq!(events.last().unwrap()["result"], "done");

    // The same with single commands, and with a request that is cancelled while it waits.
    let http = turnstone_tests::http::client();
    let body = json!({"input": "go", "request_id": "q"});
    let sent = http.post(format!("{url}/agents/asker/process")).json(&body).send().await.unwrap();
    assert_eq!(sent.status(), 202);
    let first = said(&url, &["asker", "follow", "q"]).await.pop().unwrap();
    assert_eq!(first["request_keys"]["answer"], "May I?");
    let named = first["call_id"].as_str().unwrap();
    let answer = ["asker", "resume", "q", "answer=yes", "--question", named];
    for _ in 0..2 {
        // The repeated answer names its question, so it does not answer the next one.
        assert_eq!(said(&url, &answer).await[0]["type"], "request_started");
    }
    let since = first["id"].to_string();
    let second = said(&url, &["asker", "follow", "q", "--since", &since]).await.pop().unwrap();
    assert_eq!(second["request_keys"]["answer"], "Really?");
    assert_ne!(first["call_id"], second["call_id"]);
    // Without a question's id, the newest question is answered, here with the wrong key.
    let wrong = client(&url, &["asker", "resume", "q", "more=1"]).output().await.unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("missing"), "{wrong:?}");
    let ended = said(&url, &["asker", "cancel", "q"]).await.pop().unwrap();
    assert_eq!((&ended["type"], &ended["finish_reason"]), (&json!("request_completed"), &json!("canceled")));
    program.stop().await;
}
