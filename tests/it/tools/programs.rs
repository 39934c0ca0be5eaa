//! The limits of a program: files, network, signals and resources.

use super::stdio::{call, launcher};
use super::system_python;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use turnstone_tests::clock::ManualClock;
use turnstone_worker::tool::mcp::McpServer;
use turnstone_worker::tool::{Programs, ToolPolicy, outbound};

/// Returns a folder that every user can enter, with the spy in it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("spy.py"), include_str!("spy.py")).unwrap();
    std::fs::write(folder.path().join("sibling"), "x").unwrap();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("data/turnstone.db"), "x").unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn spy(folder: &Path, program: Value, programs: Programs) -> Arc<McpServer> {
    let script = folder.join("spy.py");
    let config = json!({
        "command": [system_python(), script, "tset-a"], "program": program,
        "connect_timeout_ms": 60_000, "timeout_ms": 60_000,
    });
    let clock = Arc::new(ManualClock::default());
    let client = outbound::open_client().unwrap();
    McpServer::new("spy", serde_json::from_value(config).unwrap(), client, programs, clock).unwrap()
}

fn policy(json: Value) -> ToolPolicy {
    serde_json::from_value(json).unwrap()
}

/// Returns true if this system has every limit.
fn has_all() -> bool {
    let limits = serde_json::from_value(json!({"network": false})).unwrap();
    launcher(&ToolPolicy::default()).shortfalls(Some(&limits)).is_empty()
}

#[tokio::test]
#[cfg_attr(any(no_python, not(target_os = "linux")), ignore = "needs Python 3 and Linux")]
async fn a_program_opens_its_own_files_and_changes_only_those_it_is_given() {
    if !has_all() {
        eprintln!("this kernel has no Landlock, or an old one; `required` refuses here");
        return;
    }
    let (folder, other) = (folder(), folder());
    let path = |name: &str| folder.path().join(name).display().to_string();
    let foreign = other.path().join("sibling").display().to_string();
    let given = other.path().join("data").display().to_string();
    let programs = launcher(&ToolPolicy::default()).hiding(&[folder.path().join("data")]);
    let server = spy(folder.path(), json!({"write": [given]}), programs);
    let reads = [
        path("sibling"),
        path("data/turnstone.db"),
        foreign.clone(),
        "/etc/shadow".to_owned(),
        "/proc/1/cmdline".to_owned(),
    ];
    let note = format!("{given}/note");
    let input =
        json!({"reads": reads, "writes": [path("sibling"), foreign, note, "/tmp/turnstone-not-here"]});
    let seen = call(&server, "look", input).await.unwrap();
    let told = |kind: &str, name: &str| {
        seen[kind][name].as_str().unwrap_or_else(|| panic!("{name}: {seen:#}")).to_owned()
    };
    assert_eq!(told("reads", &path("sibling")), "done", "its own folder");
    for closed in
        [path("data/turnstone.db"), foreign.clone(), "/etc/shadow".to_owned(), "/proc/1/cmdline".to_owned()]
    {
        assert_eq!(told("reads", &closed), "PermissionError", "{closed}: {seen:#}");
    }
    assert_eq!(
        (told("writes", &note), seen["scratch"].as_str()),
        ("done".to_owned(), Some("done")),
        "{seen:#}"
    );
    for closed in [path("sibling"), foreign, "/tmp/turnstone-not-here".to_owned()] {
        assert_eq!(told("writes", &closed), "PermissionError", "{closed}: {seen:#}");
    }
    assert_eq!(seen["signal"], "PermissionError", "{seen:#}");
    server.close().await;
}

#[tokio::test]
#[cfg_attr(any(no_python, not(target_os = "linux")), ignore = "needs Python 3 and Linux")]
async fn a_program_without_network_opens_no_connection() {
    if !has_all() {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let folder = folder();
    for (program, outcome) in [(json!({}), "done"), (json!({"network": false}), "PermissionError")] {
        let server = spy(folder.path(), program, launcher(&ToolPolicy::default()));
        let seen = call(&server, "look", json!({"connects": [port]})).await.unwrap();
        assert_eq!(seen["connects"][&port], outcome, "{seen:#}");
    }
}

#[tokio::test]
#[cfg_attr(any(no_python, not(target_os = "linux")), ignore = "needs Python 3 and Linux")]
async fn a_program_has_the_resources_that_are_configured() {
    let folder = folder();
    let policy = policy(json!({"program": {"max_open_files": 77, "max_memory_bytes": 1_000_000_000}}));
    let server = spy(folder.path(), json!({"max_open_files": 66}), launcher(&policy));
    let seen = call(&server, "look", json!({})).await.unwrap();
    assert_eq!((&seen["files"], &seen["memory"]), (&json!([66, 66]), &json!(1_000_000_000)), "{seen:#}");
    assert_eq!(seen["core"], json!([0, 0]), "{seen:#}");
    let environment: Vec<&str> =
        seen["environment"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let known = ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"];
    assert!(environment.iter().all(|name| known.contains(name)), "{environment:?}");
}

#[tokio::test]
#[cfg_attr(any(no_python, not(target_os = "linux")), ignore = "needs Python 3 and Linux")]
async fn a_required_sandbox_starts_a_program_with_every_limit_or_not_at_all() {
    let folder = folder();
    let required = launcher(&policy(json!({"sandbox": "required"})));
    let sound = spy(folder.path(), json!({}), required.clone()).catalogue().await;
    match required.shortfalls(None).as_slice() {
        [] => assert!(sound.is_ok(), "{sound:?}"),
        [first, ..] => assert!(sound.unwrap_err().contains(first)),
    }
    let exposed = required.exposed(Some("the memory of the worker is open"));
    let why = spy(folder.path(), json!({}), exposed).catalogue().await.unwrap_err();
    assert!(why.contains("is not started") && why.contains("the memory of the worker is open"), "{why}");
}
