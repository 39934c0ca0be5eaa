//! The lines of the log for people: their length, and that each fact is logged once.

use crate::program::Program;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use turnstone_tests::servers::Postgres;
use turnstone_tests::{ModelServer, Reply, wait};

/// The most characters of a line.
const LONGEST: usize = 200;

/// Checks the lines of a process: no line is too long, has the context of spans or asks for a person, and no fact is
/// logged twice. Returns the facts.
fn facts(process: &str, log: &str) -> BTreeSet<String> {
    let mut facts = BTreeSet::new();
    for line in log.lines().filter(|line| line.starts_with("20") && line.contains("Z ")) {
        assert!(line.chars().count() <= LONGEST, "{process}: a line is too long: {line}");
        assert!(!line.contains("ossa.") && !line.contains("}:"), "{process}: spans are repeated: {line}");
        assert!(!line.contains(" ERROR "), "{process}: nothing here needs a person: {line}");
        // Two lines that differ in these alone report the same fact.
        let words = line
            .split(' ')
            .skip(1)
            .filter(|word| !["trace_id=", "span_id=", "next_try="].iter().any(|name| word.starts_with(name)));
        let fact = words.collect::<Vec<_>>().join(" ");
        assert!(facts.insert(fact), "{process}: a fact is logged twice: {line}\n{log}");
    }
    facts
}

fn count_of(facts: &BTreeSet<String>, words: &str) -> usize {
    facts.iter().filter(|fact| fact.contains(words)).count()
}

/// A model that fails, a breaker that opens and closes, and a server of tools that is missing.
#[tokio::test]
async fn the_log_of_an_outage_has_each_fact_once() {
    let away = Arc::new(AtomicBool::new(true));
    let state = Arc::clone(&away);
    let models = ModelServer::start(move |_| match state.load(Ordering::SeqCst) {
        true => Reply::Status(503),
        false => Reply::text("done"),
    })
    .await;
    let folder = turnstone_tests::scratch::folder();
    let settings = format!(
        "[providers.far]\nkind = 'openai'\nbase_url = '{}'\n\
         breaker = {{failure_threshold = 2, timeout_ms = 100, half_open_requests = 1}}\n\
         [models]\ndefault_model = 'm'\n[mcp.files]\ncommand = ['/nonexistent']\n",
        models.url
    );
    std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
    let arguments = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
    let mut program = Program::start(folder.path(), &arguments, &[]);
    let url = program.first_line("turnstone listens on ").await;
    let http = turnstone_tests::http::client();
    let push = async || {
        let job = json!({"type": "agent.ask", "args": ["hi"], "ext_agent_model": "m", "retry": {"max_attempts": 1},
                         "ext_agent_tools": [{"name": "files.read"}]});
        let sent = http.post(format!("{url}/ojs/v1/jobs")).json(&job).send().await.unwrap();
        assert_eq!(sent.status(), 201);
    };
    for _ in 0..6 {
        push().await;
    }
    // Two calls open the breaker, and two trial calls fail.
    models.seen(4).await;
    away.store(false, Ordering::SeqCst);
    wait::until("the breaker closes", async || {
        push().await;
        program.warned().contains("circuit breaker closed")
    })
    .await;
    program.signal("TERM");
    assert_eq!(program.ended().await, Some(0));
    let facts = facts("dev", &program.warned());
    for (words, count) in [
        ("WARN circuit breaker opened breaker=\"model/far/m\"", 1),
        ("INFO circuit breaker closed breaker=\"model/far/m\"", 1),
        ("WARN an MCP server is not available server=\"files\"", 1),
        ("INFO this scheduler leads now", 1),
    ] {
        assert_eq!(count_of(&facts, words), count, "{words}: {facts:#?}");
    }
    let discarded = count_of(&facts, "WARN job discarded job=");
    assert!((2..=6).contains(&discarded), "{facts:#?}");
}

/// A fleet with a worker that is killed.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn the_log_of_a_fleet_with_a_killed_worker_has_each_fact_once() {
    turnstone_tests::fleet::install_crypto();
    let first = AtomicBool::new(true);
    let models = ModelServer::start(move |_| match first.swap(false, Ordering::SeqCst) {
        true => Reply::Hang,
        false => Reply::text("done"),
    })
    .await;
    let database = Postgres::shared().await.database().await;
    let folder = turnstone_tests::scratch::folder();
    let settings = format!(
        "[providers.far]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n",
        models.url
    );
    std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
    let env = [("DATABASE_URL", database.url.as_str())];
    let migrated = crate::program::run(folder.path(), &["migrate"], &env).await;
    assert_eq!(migrated.code, Some(0), "{migrated:?}");
    let start = |arguments: &[&str]| Program::start(folder.path(), arguments, &env);
    let mut api = start(&["api", "--bind", "127.0.0.1:0"]);
    let url = api.first_line("turnstone listens on ").await;
    let mut killed = start(&["worker", "--name", "killed", "--lease", "1s"]);
    killed.first_line("turnstone worker killed runs ").await;
    let http = turnstone_tests::http::client();
    let job = json!({"type": "agent.ask", "args": ["hi"], "ext_agent_model": "m"});
    let sent = http.post(format!("{url}/ojs/v1/jobs")).json(&job).send().await.unwrap();
    let id = sent.json::<serde_json::Value>().await.unwrap()["job"]["id"].as_str().unwrap().to_owned();
    models.seen(1).await;
    killed.signal("KILL");
    killed.ended().await;
    let mut scheduler = start(&["scheduler"]);
    scheduler.first_line("turnstone scheduler ").await;
    let mut other = start(&["worker", "--name", "other"]);
    wait::until("another worker completes the job", async || {
        let job = http.get(format!("{url}/ojs/v1/jobs/{id}")).send().await.unwrap();
        job.json::<serde_json::Value>().await.unwrap()["job"]["state"] == "completed"
    })
    .await;
    for (name, program) in [("worker", &mut other), ("scheduler", &mut scheduler), ("api", &mut api)] {
        program.signal("TERM");
        assert_eq!(program.ended().await, Some(0));
        let facts = facts(name, &program.warned());
        let reaped = count_of(&facts, "WARN workers stopped responding");
        assert_eq!(reaped, usize::from(name == "scheduler"), "{name}: {facts:#?}");
    }
}
