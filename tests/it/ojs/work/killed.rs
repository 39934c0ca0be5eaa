//! Workers in Python and their server are killed: every job ends once.

use crate::program::Program;
use crate::random::Random;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use tokio::process::Command;
use turnstone_domain::JobState;
use turnstone_domain::state::Trigger;
use turnstone_tests::processes::{self, Process};
use turnstone_tests::servers::{Port, need_python};
use turnstone_tests::{Backend, Fleet, OjsServer, Place};

/// The number of concurrent workers.
const WORKERS: usize = 8;
/// The reservation of a fetched job, in milliseconds.
const RESERVE: &str = "2000";
/// The most jobs that end between two kills.
const STRIDE: usize = 30;
/// The number of completed jobs.
const COMPLETED: &str = "SELECT count(*) FROM jobs WHERE state = 'completed'";

/// `examples/worker.py`, which is killed when it is dropped.
fn worker(url: &str, name: &str) -> Process {
    need_python();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/worker.py");
    let mut command = Command::new("python3");
    command.arg(script).args([url, "q", "--id", name, "--reserve-ms", RESERVE]).env("no_proxy", "*");
    processes::start(&mut command)
}

fn job(n: usize) -> Value {
    let retry = json!({"max_attempts": 1000, "initial_interval": "PT0.1S"});
    json!({"type": "echo", "args": [n], "options": {"queue": "q", "retry": retry}})
}

/// Returns the edge of the table for an event, if it has one.
fn edge(event: &str) -> Option<Trigger> {
    match event {
        "job.started" => Some(Trigger::Claim),
        "job.completed" => Some(Trigger::Complete),
        "job.retrying" => Some(Trigger::Retry),
        "job.discarded" => Some(Trigger::Discard),
        "job.yielded" => Some(Trigger::Yield),
        "job.available" => Some(Trigger::RetryDue),
        "lease.expired" => Some(Trigger::LeaseExpired),
        _ => None,
    }
}

/// Asserts that every job was completed once, along the edges of the table.
pub(crate) async fn check(place: &Place, jobs: usize) {
    let reported = "SELECT v.job_seq, v.names FROM journal v JOIN jobs j ON j.stream = v.stream ORDER BY v.job_seq, v.last_event";
    let rows: Vec<(i64, String)> = place.rows(reported).await;
    let mut walks: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for (seq, names) in rows {
        walks.entry(seq).or_default().extend(names.split(',').map(str::to_owned));
    }
    assert_eq!(walks.len(), jobs);
    for events in walks.values() {
        assert_eq!(events[0], "job.enqueued");
        let end = events.iter().filter_map(|name| edge(name)).try_fold(JobState::Available, JobState::after);
        assert_eq!(end, Some(JobState::Completed), "{events:?}");
        assert_eq!(events.iter().filter(|name| *name == "job.completed").count(), 1, "{events:?}");
    }
    assert_eq!(place.number("SELECT count(*) FROM job_results").await, i64::try_from(jobs).unwrap());
}

async fn every_job_is_completed_once_across_kills(backend: Backend, jobs: usize) {
    let server = OjsServer::over(Fleet::builder().on(backend).in_real_time().workers(0).start().await);
    let time = server.fleet.keep_time();
    for n in 0..jobs {
        server.push(&job(n)).await;
    }
    let mut random = Random::new(4_711);
    let name = |n: usize| format!("w{n}");
    let mut workers: Vec<Process> = (0..WORKERS).map(|n| worker(&server.fleet.url, &name(n))).collect();
    let (mut done, mut kills) = (0, 0);
    while done < jobs {
        let next = jobs.min(done + 1 + random.below(STRIDE));
        let completed = server.fleet.place.at_least(COMPLETED, i64::try_from(next).unwrap()).await;
        done = usize::try_from(completed).unwrap();
        let victim = random.below(WORKERS);
        workers[victim].kill().await.expect("a kill");
        kills += 1;
        workers[victim] = worker(&server.fleet.url, &name(victim));
    }
    eprintln!("{jobs} jobs and {kills} kills");
    drop(workers);
    check(&server.fleet.place, jobs).await;
    drop(time);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn every_job_is_completed_once_across_kills_on_sqlite() {
    every_job_is_completed_once_across_kills(Backend::Sqlite, 150).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: kills on the second database"]
async fn every_job_is_completed_once_across_kills_on_postgres() {
    every_job_is_completed_once_across_kills(Backend::Postgres, 150).await;
}

#[ignore = "long: 2,000 jobs on each database, and a kill for every fifteenth"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_jobs_are_completed_once_across_kills() {
    for backend in Backend::ALL {
        every_job_is_completed_once_across_kills(backend, 2_000).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn the_example_worker_survives_kills_of_its_server_and_itself() {
    let folder = turnstone_tests::scratch::folder();
    let start = |bind: &str| Program::start(folder.path(), &["dev", "--data", "data", "--bind", bind], &[]);
    let port = Port::reserve();
    let bind = port.addr().to_string();
    let mut server = start(&bind);
    let url = server.first_line("turnstone listens on ").await;
    let http = turnstone_tests::http::client();
    let jobs = 200;
    for n in 0..jobs {
        let sent = http.post(format!("{url}/ojs/v1/jobs")).json(&job(n)).send().await.unwrap();
        assert_eq!(sent.status(), 201);
    }
    let place: Place = folder.path().join("data/turnstone.db").into();
    let mut python = worker(&url, "python");
    place.at_least(COMPLETED, 20).await;
    server.signal("KILL");
    server.ended().await;
    drop(server);
    let before = place.number(COMPLETED).await;
    let mut server = start(&bind);
    server.says("turnstone listens on ").await;
    place.at_least(COMPLETED, before + 20).await;
    python.kill().await.unwrap();
    let _next = worker(&url, "python");
    place.at_least(COMPLETED, i64::try_from(jobs).unwrap()).await;
    check(&place, jobs).await;
    server.stop().await;
}
