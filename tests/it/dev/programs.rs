//! Programs of MCP servers beside the real server: none finds a secret of the process that started it.

use crate::program::{Env, Program, without_environment};
use crate::tools::system_python;
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use turnstone_tests::processes;
use turnstone_tests::servers::Postgres;
use turnstone_tests::{Place, binaries, fleet, wait};

const SPY: &str = include_str!("../tools/spy.py");
const SCRIPT: &str = "
rules:
  - when: {tools_include: [spy.look], tool_results: 0}
    answer: {tool_calls: [{name: spy.look, arguments: {}}]}
  - answer: {text: '${tool_1}'}
";
/// A user without a name or files.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

/// Returns the secret that only the environment of the server in a folder holds.
fn secret_of(folder: &Path) -> String {
    format!("kea-{}-not-for-programs", folder.file_name().unwrap().display())
}

/// Returns a folder that every user can enter, with a server whose tool `spy.look` looks for the secret.
fn set_up(policy: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let backwards: String = secret_of(folder.path()).chars().rev().collect();
    let settings = format!(
        "[providers.script]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_provider = 'script'\n\
         default_model = 'm'\n[tools.crm]\ndescription = 'd'\nurl = 'https://crm.example/'\n\
         headers = {{ Authorization = {{ secret = 'env:CRM_SECRET' }} }}\n[tool_policy]\n{policy}\n\
         [mcp.spy]\ncommand = ['{}', '{}/spy.py', '{backwards}']\nconnect_timeout_ms = 60000\n\
         timeout_ms = 60000\n",
        system_python(),
        folder.path().display()
    );
    for (file, text) in [("turnstone.toml", settings.as_str()), ("script.yaml", SCRIPT), ("spy.py", SPY)] {
        std::fs::write(folder.path().join(file), text).unwrap();
    }
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

/// Runs a server with the secret in its environment, as another user if one is given, and returns the answer of the spy.
async fn seen(folder: &Path, user: Option<u32>) -> Value {
    turnstone_tests::servers::need_python();
    fleet::install_crypto();
    let serve = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
    let mut command = match user {
        None => Command::new(binaries::turnstone()),
        Some(user) => {
            chown(folder, Some(user), Some(user)).unwrap();
            let mut command = Command::new("setpriv");
            command.args([format!("--reuid={user}"), format!("--regid={user}"), "--clear-groups".to_owned()]);
            command.arg(binaries::turnstone());
            command
        }
    };
    let command = without_environment(&mut command)
        .args(serve)
        .env("CRM_SECRET", secret_of(folder))
        .current_dir(folder);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = processes::start(command);
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let first = wait::output("the server starts", lines.next_line()).await.unwrap().unwrap();
    let url = first.strip_prefix("turnstone listens on ").unwrap_or_else(|| panic!("{first}")).to_owned();
    let job = json!({
        "type": "agent.ask", "args": ["look"],
        "ext_agent_model": "m", "ext_agent_tools": [{"name": "spy.look"}], "retry": {"max_attempts": 1},
    });
    let http = turnstone_tests::http::client();
    let pushed: Value =
        http.post(format!("{url}/ojs/v1/jobs")).json(&job).send().await.unwrap().json().await.unwrap();
    let id = pushed["job"]["id"].as_str().unwrap_or_else(|| panic!("{pushed}")).to_owned();
    let result = wait::found("the job's result", async || {
        let job: Value =
            http.get(format!("{url}/ojs/v1/jobs/{id}")).send().await.unwrap().json().await.unwrap();
        match job["job"]["state"].as_str() {
            Some("completed") => Some(job["job"]["result"].clone()),
            Some("discarded" | "cancelled") => panic!("{job:#}"),
            _ => None,
        }
    })
    .await;
    drop(lines);
    answer_of(&result)
}

/// Returns the answer of the spy, which the model has repeated.
fn answer_of(result: &Value) -> Value {
    let text = match result {
        Value::String(text) => text.clone(),
        other => other.pointer("/text").or(other.pointer("/output")).unwrap_or(other).to_string(),
    };
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {result}"))
}

fn assert_nothing_found(seen: &Value, what: &str) {
    assert_eq!((&seen["found"], &seen["traced"]), (&json!([]), &json!(false)), "{what}: {seen:#}");
    let read: Vec<&str> = seen["read"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for place in ["environ", "auxv", "maps", "mem", "fd"] {
        assert!(!read.contains(&place), "{what}: {place} can be read: {seen:#}");
    }
}

#[tokio::test]
#[cfg_attr(any(no_python, not(target_os = "linux")), ignore = "needs Python 3 and Linux")]
async fn a_program_finds_no_secret_of_its_worker() {
    let best = seen(set_up("").path(), None).await;
    assert_nothing_found(&best, "in a sandbox");
    let status = &best["status"];
    assert_eq!(
        (&status["NoNewPrivs"], &status["CapEff"]),
        (&json!("1"), &json!("0000000000000000")),
        "{best:#}"
    );
    assert_eq!((&best["scratch"], &best["core"]), (&json!("done"), &json!([0, 0])), "{best:#}");
    if is_root() {
        let other = seen(set_up(&format!("program = {{ uid = {NOBODY} }}")).path(), None).await;
        assert_nothing_found(&other, "as another user");
        let uid = format!("{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}");
        assert_eq!(other["status"]["Uid"], json!(uid), "{other:#}");
        assert_eq!(
            (&other["status"]["Groups"], &other["scratch"]),
            (&json!(""), &json!("done")),
            "{other:#}"
        );
    }
}

/// The server alone hides its memory: nothing of this depends on the sandbox.
#[tokio::test]
#[cfg_attr(any(no_python, not(target_os = "linux")), ignore = "needs Python 3 and Linux")]
async fn a_program_of_the_same_user_finds_no_secret_without_a_sandbox() {
    let user = is_root().then_some(NOBODY);
    let same = seen(set_up("sandbox = 'off'").path(), user).await;
    assert_nothing_found(&same, "without a sandbox");
    assert_eq!(same["status"]["NoNewPrivs"], json!("0"), "{same:#}");
    // Root with CAP_SYS_PTRACE sees the memory of every process, as the documentation says: the spy is no fool.
    if is_root() {
        let root = seen(set_up("sandbox = 'off'").path(), None).await;
        let found = root["found"].as_array().unwrap();
        assert!(found.contains(&json!("mem")) && !found.contains(&json!("environ")), "{root:#}");
    }
}

/// The environment of a serving process as the kernel shows it holds what it needs, and no secret.
fn assert_clean(program: &Program, command: &str, secrets: &[&str]) {
    let shown = std::fs::read(format!("/proc/{}/environ", program.pid())).unwrap();
    let shown = String::from_utf8_lossy(&shown).replace('\0', "\n");
    assert!(shown.contains("PATH=") && shown.contains("LANG=C"), "{command}: {shown}");
    for secret in secrets {
        assert!(!shown.contains(secret), "{command}: {secret}: {shown}");
    }
    let name = std::fs::read_to_string(format!("/proc/{}/comm", program.pid())).unwrap();
    assert_eq!(name.trim(), "turnstone", "{command}");
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
#[cfg_attr(not(target_os = "linux"), ignore = "needs /proc, which Linux has")]
async fn a_serving_process_has_no_secret_in_its_environment() {
    if !is_root() {
        // Only root may look.
        return;
    }
    let key = "0123456789abcdef0123456789abcdef";
    let settings = "[server]\napi_keys = ['env:CLIENT_KEY']\n";
    let database = Postgres::shared().await.database().await;
    Place::from(&database).migrate().await;
    let env: Env<'_> = &[
        ("CLIENT_KEY", key),
        ("DATABASE_URL", &database.url),
        ("TURNSTONE_STORE__CONNECTIONS", "3"),
        ("LANG", "C"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer kea-7"),
    ];
    let secrets = [key, "postgres://", "STORE__CONNECTIONS", "kea-7"];
    let folder = turnstone_tests::scratch::folder();
    std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
    for (command, said) in [
        (&["dev", "--data", "data", "--bind", "127.0.0.1:0"] as &[&str], "turnstone listens on"),
        (&["api", "--bind", "127.0.0.1:0"], "turnstone listens on"),
        (&["scheduler"], "turnstone scheduler"),
        (&["worker", "--name", "w"], "turnstone worker w runs"),
    ] {
        // The embedded store of `dev` takes no address; the others show that theirs is still known.
        let env: Vec<_> =
            env.iter().copied().filter(|(name, _)| command[0] != "dev" || *name != "DATABASE_URL").collect();
        let mut program = Program::start(folder.path(), command, &env);
        program.says(said).await;
        assert_clean(&program, command[0], &secrets);
        program.stop().await;
    }
}

#[tokio::test]
async fn a_mark_that_no_start_has_set_is_refused() {
    let folder = turnstone_tests::scratch::folder();
    for number in ["0", "99", "x"] {
        let ran = crate::program::run(folder.path(), &["dev"], &[("TURNSTONE_ENVIRONMENT_FD", number)]).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("unset TURNSTONE_ENVIRONMENT_FD"), "{ran:?}");
    }
}

/// The doctor and the start name what the system lacks; here it lacks nothing, or says so.
#[tokio::test]
async fn the_doctor_says_which_limits_the_system_has() {
    let folder = turnstone_tests::scratch::folder();
    for (policy, words) in
        [("", "limit for the programs"), ("[tool_policy]\nsandbox = 'off'\n", "without limits")]
    {
        let settings = format!("{policy}[mcp.a]\ncommand = ['a']\n");
        std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
        let ran = crate::program::run(folder.path(), &["doctor"], &[]).await;
        let lacks = ran.stdout.contains("Landlock");
        assert!(ran.stdout.contains(words) != (policy.is_empty() && lacks), "{ran:?}");
    }
}

/// Servers that check and serve programs keep working through the launcher: its errors reach the operator.
#[tokio::test]
#[cfg_attr(not(target_os = "linux"), ignore = "needs Linux")]
async fn a_program_that_cannot_start_is_reported_with_the_reason() {
    let folder = turnstone_tests::scratch::folder();
    let check = async |server: &str| {
        std::fs::write(folder.path().join("turnstone.toml"), format!("[mcp.a]\n{server}\n")).unwrap();
        crate::program::run(folder.path(), &["mcp", "check", "-o", "json"], &[]).await
    };
    let absent = check("command = ['no-such-program']").await;
    assert!(absent.stdout.contains("no such program"), "{absent:?}");
    let closed = check("command = ['sh', '-c', 'cat turnstone.toml >&2; exit 3']").await;
    let lacks = closed.stdout.contains("command = ");
    assert!(closed.stdout.contains("program.read") || lacks, "{closed:?}");
    if !is_root() {
        let other = check("command = ['true']\nprogram = { uid = 4242 }").await;
        assert!(other.stdout.contains("CAP_SETUID"), "{other:?}");
    }
}
