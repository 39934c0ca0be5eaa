//! MCP servers that are processes, well-behaved and hostile.

use super::parrot;
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::CallId;
use turnstone_domain::agent::AgentFormat;
use turnstone_domain::engagement::User;
use turnstone_tests::binaries;
use turnstone_tests::clock::ManualClock;
use turnstone_tests::wait::until;
use turnstone_worker::tool::mcp::McpServer;
use turnstone_worker::tool::{Identity, Invocation, Programs, Tool, ToolError, ToolPolicy, outbound};

fn server_at(config: Value, clock: &ManualClock) -> Arc<McpServer> {
    let config = serde_json::from_value(config).unwrap();
    let client = outbound::open_client().unwrap();
    McpServer::new("parrot", config, client, launcher(&ToolPolicy::default()), Arc::new(clock.clone()))
        .unwrap()
}

/// Starts programs as the `turnstone` program does.
pub fn launcher(policy: &ToolPolicy) -> Programs {
    Programs::through(vec![binaries::turnstone().into(), "run-program".into()], policy).unwrap()
}

fn script(mode: &str, more: Value) -> Arc<McpServer> {
    script_at(mode, more, &ManualClock::default())
}

fn script_at(mode: &str, more: Value, clock: &ManualClock) -> Arc<McpServer> {
    let mut config = json!({"timeout_ms": 60_000});
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server_at(parrot(mode, &config), clock)
}

pub async fn call(server: &Arc<McpServer>, tool: &str, input: Value) -> Result<Value, ToolError> {
    let catalogue = server.catalogue().await.map_err(ToolError::Failed)?;
    let tool = catalogue.get(tool).unwrap_or_else(|| panic!("no {tool} in {catalogue:?}")).clone();
    let call_id = CallId::from("call-7");
    let user = User { id: "ada".to_owned(), email: None };
    tool.call(Invocation {
        call_id: &call_id,
        input: &input,
        timeout: tool.timeout(),
        identity: &Identity { user: Some(user), ..Identity::default() },
    })
    .await
}

/// Returns the error of a call that may have been made.
fn loss(outcome: Result<Value, ToolError>) -> String {
    match outcome {
        Err(ToolError::Lost(text)) => text,
        other => panic!("{other:?}"),
    }
}

fn failure(outcome: Result<Value, ToolError>) -> String {
    match outcome {
        // `Failed` is the error for a server that does not list its tools.
        Err(ToolError::Answered(text) | ToolError::Failed(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// RS-12 and RS-13.
#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
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

/// RS-22; OAS-25: the server receives the id of the job's user.
#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn outcomes_are_structured_or_text_or_blocks() {
    let server = script("well", json!({}));
    assert_eq!(call(&server, "echo", json!({"text": "hi"})).await, Ok(json!("hi")));
    // A server that cuts texts between UTF-16 units sends half of a surrogate pair.
    assert_eq!(call(&server, "echo", json!({"text": "cut HALF"})).await, Ok(json!("cut \u{FFFD}")));
    assert_eq!(call(&server, "add", json!({"a": 2, "b": 3})).await, Ok(json!({"sum": 5})));
    let image = call(&server, "image", json!({})).await.unwrap();
    assert_eq!((&image[0]["text"], &image[1]["mimeType"]), (&json!("here"), &json!("image/png")));
    let shown = server.catalogue().await.unwrap().get("image").cloned().unwrap();
    let (call_id, identity) = ("call-7".into(), Identity::default());
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
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn a_server_inherits_no_secret_and_receives_its_own() {
    let dir = turnstone_tests::scratch::folder();
    let file = dir.path().join("token");
    std::fs::write(&file, "kea-9021-secret").unwrap();
    let secret = format!("file:{}", file.display());
    let server = script("well", json!({"env": {"A_TOKEN": {"secret": secret}, "COLOUR": "red"}}));
    let seen = call(&server, "env", json!({})).await.unwrap();
    // The server has the secret; its echo is masked before a model could see it.
    assert_eq!((&seen["A_TOKEN"], &seen["COLOUR"]), (&json!("***"), &json!("red")));
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && seen.get("CARGO_MANIFEST_DIR").is_none());
    std::fs::remove_file(&file).unwrap();
    server.close().await;
    let why = server.catalogue().await.unwrap_err();
    assert!(why.contains("env.A_TOKEN") && why.contains("cannot be read"), "{why}");
}

#[tokio::test]
#[ignore = "long: the time limit of a handshake"]
async fn a_server_without_a_handshake_is_retried_later() {
    // The silent server has to start before it is silent.
    for (mode, word, ms) in
        [("deaf", "shake hands", 500), ("garbage", "shake hands", 500), ("silent", "list its tools", 5_000)]
    {
        let clock = ManualClock::default();
        let server = script_at(mode, json!({"connect_timeout_ms": ms}), &clock);
        let first = server.catalogue().await.unwrap_err();
        assert!(first.contains(word), "{mode}: {first}");
        let second = server.catalogue().await.unwrap_err();
        assert!(second.contains(word) && second.contains("tried again after"), "{mode}: {second}");
        clock.advance_ms(1_001);
        let third = server.catalogue().await.unwrap_err();
        assert!(third.contains(word) && !third.contains("tried again after"), "{mode}: {third}");
    }
    let absent = server_at(json!({"command": ["/no/such/program"]}), &ManualClock::default());
    assert!(absent.catalogue().await.unwrap_err().contains("cannot be started"));
}

#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn a_server_that_dies_in_a_call_is_reported_and_restarted() {
    let clock = ManualClock::default();
    let server = script_at("well", json!({}), &clock);
    let text = loss(call(&server, "die", json!({})).await);
    assert!(text.contains("exit status: 7") && text.contains("out of memory, sorry"), "{text}");
    assert_eq!(call(&server, "echo", json!({"text": "again"})).await, Ok(json!("again")));
    // The delay grows for a server that dies every time.
    loss(call(&server, "die", json!({})).await);
    loss(call(&server, "die", json!({})).await);
    assert!(failure(call(&server, "echo", json!({"text": "x"})).await).contains("tried again after"));
    clock.advance_ms(1_001);
    assert_eq!(call(&server, "echo", json!({"text": "back"})).await, Ok(json!("back")));
}

#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn outcomes_are_bounded() {
    let server = script("well", json!({"max_response_bytes": 10_000}));
    // The tool had its effect: a repeated call would have it again.
    let outcome = call(&server, "huge", json!({"bytes": 20_000})).await;
    assert!(
        matches!(&outcome, Err(ToolError::Final(text)) if text.contains("max_response_bytes")),
        "{outcome:?}"
    );
    assert!(call(&server, "huge", json!({"bytes": 9_000})).await.is_ok());
    // Of 100 MB no more is read than the largest message.
    let text = loss(call(&server, "huge", json!({"bytes": 100_000_000})).await);
    assert!(text.contains("longer than allowed"), "{text}");
    assert_eq!(call(&server, "echo", json!({"text": "still here"})).await, Ok(json!("still here")));
}

#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
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
    // A killed process that its parent has not waited for is a zombie.
    !stat.is_empty() && !stat.contains(") Z ")
}

async fn gone(pid: &Value) {
    until("the process is gone", async || !lives(pid)).await;
}

#[tokio::test]
#[cfg_attr(any(no_python, not(target_os = "linux")), ignore = "needs Python 3 and Linux")]
async fn processes_and_their_children_die_with_the_worker() {
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
async fn a_server_that_failed_is_reported_with_the_end_of_its_output() {
    let words = "i=0; while [ $i -lt 200 ]; do echo \"frame $i of the traceback\" >&2; i=$((i+1)); done; \
                 echo 'ModuleNotFoundError: papers' >&2; exit 3";
    let server = server_at(json!({"command": ["sh", "-c", words]}), &ManualClock::default());
    let why = server.catalogue().await.unwrap_err();
    assert!(why.contains("exit status: 3") && why.contains("ModuleNotFoundError: papers"), "{why}");
    assert!(why.contains("frame 199") && !why.contains("frame 150"), "{why}");
}

#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn a_change_of_a_pinned_server_is_refused_and_reported() {
    let server = script("well", json!({"pin": true}));
    call(&server, "change", json!({})).await.unwrap();
    let catalogue = server.catalogue().await.unwrap();
    assert!(catalogue.get("echo").is_none() && catalogue.get("add").is_some());
    let why = catalogue.named("echo", AgentFormat::Ossa).unwrap_err();
    assert!(why.contains("description changed") && why.contains("turnstone mcp check parrot"), "{why}");
    // The same over a new connection, with the server's first answers.
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
    assert!(other.named("add", AgentFormat::Ossa).unwrap_err().contains(&digest), "{:?}", other.withheld());
}
