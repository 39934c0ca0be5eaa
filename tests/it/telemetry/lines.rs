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

/// A provider with a wrong address: each job says at once why it waits, and the log of the process says it once.
#[tokio::test]
async fn a_refused_connection_is_what_a_job_waits_for_and_is_logged_once() {
    // A bound socket that does not listen: no other process takes the port, and a connection is refused.
    let closed = tokio::net::TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}", closed.local_addr().unwrap());
    let folder = turnstone_tests::scratch::folder();
    let settings = format!(
        "[providers.script]\nkind = 'openai'\nbase_url = '{address}/v1'\n[models]\ndefault_model = 'm'\n"
    );
    std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
    let arguments = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
    let mut program = Program::start(folder.path(), &arguments, &[]);
    let url = program.first_line("turnstone listens on ").await;
    let http = turnstone_tests::http::client();
    let get = async |path: &str| {
        let answer = http.get(format!("{url}{path}")).send().await.unwrap();
        answer.json::<serde_json::Value>().await.unwrap()
    };
    for id in ["0190a7b2-0000-7000-8000-0000000000a1", "0190a7b2-0000-7000-8000-0000000000a2"] {
        let job = json!({"type": "agent.ask", "id": id, "args": ["hi"], "ext_agent_model": "m"});
        let sent = http.post(format!("{url}/ojs/v1/jobs")).json(&job).send().await.unwrap();
        assert_eq!(sent.status(), 201);
        let waiting = format!("provider script: connection refused at {address} (attempt ");
        let says = async |arguments: &[&str]| {
            let ran = crate::program::run(folder.path(), &[arguments, &["--url", &url]].concat(), &[]).await;
            ran.stdout.contains(&waiting) && ran.stdout.contains(" of 25, again at ")
        };
        let mut job = json!(null);
        wait::until("the job waits for its provider", async || {
            job = get(&format!("/ojs/v1/jobs/{id}")).await["job"].clone();
            job["state"] == "retryable"
        })
        .await;
        let awaited = job["waits_for"].clone();
        assert_eq!(
            (&awaited["kind"], &awaited["provider"]),
            (&json!("provider"), &json!("script")),
            "{job:#}"
        );
        assert_eq!(
            (&awaited["problem"], &awaited["address"]),
            (&json!("connection refused"), &json!(address))
        );
        assert_eq!(
            (&awaited["max_attempts"], &awaited["next_retry_at"]),
            (&json!(25), &job["next_retry_at"])
        );
        let message = job["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("cannot connect: connection refused at {address}")), "{message}");
        let engagement = job["ext_agent_engagement_id"].as_str().unwrap().to_owned();
        wait::until("`job get` says it", async || says(&["job", "get", id]).await).await;
        wait::until("`engagement show` says it", async || says(&["engagement", "show", &engagement]).await)
            .await;
        wait::until("the engagement says it", async || {
            let shown = get(&format!("/engagements/{engagement}")).await;
            let awaiting = &shown["awaiting"];
            awaiting["kind"] == "provider"
                && shown["status"] == "queued"
                && awaiting["provider"]["address"] == address
                && awaiting["prompt"].as_str().unwrap().starts_with(&waiting)
        })
        .await;
    }
    program.signal("TERM");
    assert_eq!(program.ended().await, Some(0));
    let facts = facts("dev", &program.warned());
    let line = format!("WARN provider script: connection refused at {address}");
    assert_eq!(count_of(&facts, &line), 1, "{facts:#?}");
}
