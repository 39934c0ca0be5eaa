//! A server that is killed again and again: no job is discarded, and each answer is paid for at most once more per kill.

use crate::program::Program;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::interval;
use turnstone_tests::wait::{ends, until_within};
use turnstone_tests::{Gate, ModelServer, Place, Reply, scratch};

/// The life of a process.
const LIFE: Duration = Duration::from_millis(800);
/// The deadline of the last process.
const END: Duration = Duration::from_secs(240);

/// The answers that were asked for: how often, by job and turn.
type Asked = Arc<Mutex<BTreeMap<(String, usize), usize>>>;

/// Returns a reply that is given after a time.
fn after(time: Duration, reply: Reply) -> Reply {
    let gate = Gate::default();
    let opened = gate.clone();
    tokio::spawn(async move {
        let mut ticks = interval(time);
        // The first tick comes at once.
        ticks.tick().await;
        ticks.tick().await;
        opened.open();
    });
    reply.behind(&gate)
}

/// Returns how often the model asked for a lookup: the last call says so. A long conversation leaves out its first calls.
fn calls_so_far(request: &Value) -> usize {
    let calls = request["messages"].as_array().unwrap().iter().rev();
    let last = calls.filter_map(|message| message["tool_calls"][0]["function"]["arguments"].as_str()).next();
    last.map_or(0, |arguments| {
        let arguments: Value = serde_json::from_str(arguments).unwrap();
        usize::try_from(arguments["n"].as_u64().unwrap()).unwrap() + 1
    })
}

/// Returns a model that takes `time` for an answer, looks something up `turns` times before the last one, and counts what it
/// is asked.
fn looking_up(turns: usize, time: Duration, asked: Asked) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| {
        let job = request["messages"].as_array().unwrap().iter().find(|message| message["role"] == "user");
        let job = job.unwrap()["content"].as_str().unwrap().to_owned();
        let turn = calls_so_far(request);
        let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
        *asked.entry((job.clone(), turn)).or_default() += 1;
        match turn < turns && !job.starts_with("slow") {
            true => after(time, Reply::call("look_up", json!({"n": turn}))),
            false if job.starts_with("slow") => after(LIFE * 3, Reply::text("done")),
            false => after(time, Reply::text("done")),
        }
    }
}

fn start(folder: &Path) -> Program {
    Program::start(folder, &["dev", "--data", "data", "--bind", "127.0.0.1:0"], &[])
}

/// Enqueues the jobs and returns their ids.
async fn enqueued(folder: &Path, jobs: usize) -> Vec<String> {
    let mut program = start(folder);
    let url = program.first_line("turnstone listens on ").await;
    let http = turnstone_tests::http::client();
    let mut ids = Vec::new();
    for n in 0..=jobs {
        // The answer to the last one takes longer than any process lives.
        let input = if n == jobs { "slow".to_owned() } else { format!("job {n}") };
        let job = json!({"type": "agent.ask", "args": [input], "ext_agent_model": "m",
                         "ext_agent_tools": [{"name": "look_up"}]});
        let pushed = http.post(format!("{url}/ojs/v1/jobs")).json(&job).send().await.unwrap();
        let pushed: Value = pushed.json().await.unwrap();
        ids.push(pushed["job"]["id"].as_str().unwrap_or_else(|| panic!("{pushed:#}")).to_owned());
    }
    program.signal("KILL");
    program.ended().await;
    ids
}

/// Kills the server `kills` times over `jobs` jobs of `turns` turns, each with an answer of `time`, and lets the last one end
/// them.
async fn killed(kills: usize, jobs: usize, turns: usize, time: Duration) {
    let asked: Asked = Arc::default();
    turnstone_tests::fleet::install_crypto();
    let models = ModelServer::start(looking_up(turns, time, Arc::clone(&asked))).await;
    let tools = turnstone_tests::ToolServer::start().await;
    let folder = scratch::folder();
    let settings = format!(
        "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n\
         [tools.look_up]\ndescription = 'Looks it up.'\nurl = '{}/look_up'\nallow_private = true\nidempotent = true\n",
        models.url, tools.url
    );
    std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
    let ids = enqueued(folder.path(), jobs).await;
    for _ in 0..kills {
        let mut program = start(folder.path());
        let ended = ends(LIFE, program.ended()).await;
        assert!(ended.is_none(), "a server ends by itself: {}", program.warned());
        program.signal("KILL");
        program.ended().await;
    }
    let place: Place = folder.path().join("data/turnstone.db").into();
    let errors: Vec<(String,)> = place
        .rows("SELECT e.error FROM jobs AS j JOIN job_errors AS e ON e.job_seq = j.seq WHERE j.state = 'discarded'")
        .await;
    let discarded = place.number("SELECT count(*) FROM jobs WHERE state = 'discarded'").await;
    assert_eq!(discarded, 0, "{errors:?}");

    let mut last = start(folder.path());
    let url = last.first_line("turnstone listens on ").await;
    let http = turnstone_tests::http::client();
    // An operator lets go on what was held because its workers kept dying.
    let held: Vec<(String,)> = place.rows("SELECT id FROM jobs WHERE held = 1").await;
    for (id,) in &held {
        let resumed =
            http.post(format!("{url}/ojs/v1/agents/{id}/resume")).json(&json!({})).send().await.unwrap();
        assert!(resumed.status().is_success(), "{}", resumed.text().await.unwrap());
    }
    let completed = "SELECT count(*) FROM jobs WHERE state = 'completed'";
    let all = i64::try_from(ids.len()).unwrap();
    until_within("all jobs complete", END, async || place.number(completed).await >= all).await;
    last.stop().await;
    place.check().await;

    let asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    let most = asked.values().max().copied().unwrap_or_default();
    assert!(most <= kills + 2, "an answer was paid for {most} times in {kills} kills");
    let answers = asked.len();
    let repeated: usize = asked.values().map(|times| times - 1).sum();
    let share = 1_000 * repeated / answers;
    eprintln!(
        "{kills} kills: {answers} answers, {repeated} paid for again ({share} per mille), at most {most} times; {} jobs held",
        held.len()
    );
    let jobs: HashSet<&String> = asked.keys().map(|(job, _)| job).collect();
    assert_eq!(jobs.len(), ids.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_few_kills_discard_nothing() {
    killed(4, 3, 8, Duration::from_millis(150)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: 60 kills"]
async fn sixty_kills_discard_nothing_and_pay_each_answer_once_per_kill() {
    // An agent has 50 turns at most. Each job needs 15 s.
    killed(60, 6, 45, Duration::from_millis(330)).await;
}
