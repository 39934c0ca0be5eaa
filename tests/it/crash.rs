//! A worker process is killed with SIGKILL before and after each of its writes, and around a tool call, on both
//! databases.

mod budgets;
mod every_write;
mod guardrails;
mod kept_answers;
mod lost_commits;
mod lost_power;
mod repeated_calls;
mod scenes;
mod slow_awaits;
mod urgent;

use futures::future::join_all;
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::process::Command;
use turnstone_domain::JobState;
use turnstone_tests::processes::{self, Process};
use turnstone_tests::{Backend, Fleet, Reply, binaries, model_server, wait};

/// Settings of a worker without prices.
const FREE: &str = "{}";

/// Starts a worker process over the fleet's database; it dies at `point`. Its leases outlast most tests.
pub fn spawn(fleet: &Fleet, slots: usize, point: Option<&str>) -> Process {
    spawn_with_lease(fleet, slots, 15_000, point)
}

/// The same with leases of this length.
pub fn spawn_with_lease(fleet: &Fleet, slots: usize, lease_ms: u64, point: Option<&str>) -> Process {
    start(fleet, slots, lease_ms, FREE, point)
}

/// The same with these settings.
fn start(fleet: &Fleet, slots: usize, lease_ms: u64, settings: &str, point: Option<&str>) -> Process {
    let mut command = Command::new(binaries::crash_worker());
    command
        .arg(fleet.place.to_string())
        .args([&fleet.models.url, &fleet.tools.url])
        .args([slots.to_string(), lease_ms.to_string()])
        .arg(settings)
        .args(point)
        .stdin(Stdio::piped());
    processes::start(&mut command)
}

/// Waits until a worker process is killed with SIGKILL: by itself at its point, or by the test.
pub async fn killed(mut worker: Process) {
    // `wait` closes the standard input, which would end the worker.
    let stdin = worker.stdin.take();
    let status = wait::output("a worker process is killed", worker.wait()).await.expect("a status");
    drop(stdin);
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    assert_eq!(signal, Some(9), "the worker was to be killed, and ended with {status}");
}

/// Runs a test on both databases at the same time.
async fn on_every_store<F: Future<Output = ()>>(test: impl Fn(Backend) -> F) {
    join_all(Backend::ALL.map(test)).await;
}

/// Alternates the databases, so that each has points before and after commits.
fn shared_out<T>(points: &[T]) -> impl Iterator<Item = (Backend, &T)> {
    let backends = [Backend::Sqlite, Backend::Postgres, Backend::Postgres, Backend::Sqlite];
    let known = backends.into_iter().filter(|backend| Backend::ALL.contains(backend));
    known.collect::<Vec<_>>().into_iter().cycle().zip(points)
}

/// Calls `tool` once, and then answers.
fn script(tool: &'static str) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| match model_server::outcomes(request) {
        0 => Reply::call(tool, json!({"n": 1})),
        _ => Reply::text("done"),
    }
}

fn job(tool: &str) -> Value {
    json!({"type": "agent.crash", "args": ["go"], "ext_agent_model": "m", "ext_agent_token_budget": 100_000,
           "ext_agent_tools": [{"name": tool}]})
}

/// A fleet without workers, whose model calls `tool` once, and a job in it.
async fn with_a_job(backend: Backend, tool: &'static str) -> (Fleet, String) {
    let fleet = Fleet::builder().on(backend).workers(0).model(script(tool)).start().await;
    let id = fleet.push(&job(tool)).await;
    (fleet, id)
}

/// A worker takes the job and dies at `point`; another one runs it as far as possible.
pub async fn crash(fleet: &Fleet, id: &str, point: &str) {
    die(fleet, 4, FREE, point).await;
    replace(fleet, 4, FREE, id).await;
}

/// A worker takes the jobs and dies at `point`.
async fn die(fleet: &Fleet, slots: usize, prices: &str, point: &str) {
    killed(start(fleet, slots, 15_000, prices, Some(point))).await;
}

/// Another worker runs the job of a dead one as far as possible.
async fn replace(fleet: &Fleet, slots: usize, prices: &str, id: &str) {
    // The dead worker's lease would expire. No other worker is alive, so it can be released now.
    fleet.release_all().await;
    let worker = start(fleet, slots, 15_000, prices, None);
    fleet.wait_for(id, &[JobState::Completed, JobState::Discarded, JobState::Pending]).await;
    drop(worker);
}

/// Runs one job with a crash at `point`. Returns the fleet and the job's id after another worker settled it.
async fn crash_at(backend: Backend, point: &str, tool: &'static str) -> (Fleet, String) {
    let (fleet, id) = with_a_job(backend, tool).await;
    crash(&fleet, &id, point).await;
    (fleet, id)
}

/// Asserts that every answer was committed before its worker died, and booked once. Ends the fleet.
async fn ends_paid_once(fleet: Fleet, id: &str) {
    let calls = fleet.models.calls();
    let answers = fleet.number(&turnstone_tests::journal::phases(3)).await;
    assert_eq!(i64::try_from(calls.len()).unwrap(), answers, "model calls");
    let reported: i64 = calls.iter().map(|call| call.reported).sum();
    assert_eq!(fleet.job(id).await["ext_agent_tokens_used"], reported, "tokens in {}", fleet.place);
    fleet.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_outcome_of_a_call_that_is_not_idempotent_becomes_a_review() {
    for (backend, point) in shared_out(&["1:intent:after", "1:outcome:before"]) {
        let reached = usize::from(point.starts_with("1:outcome"));
        let (fleet, id) = crash_at(backend, point, "book").await;
        assert_eq!(fleet.job(&id).await["state"], "pending", "at {point} on {backend:?}");
        assert_eq!(fleet.tools.calls().len(), reached, "at {point} on {backend:?}: no blind retry");
        let reviews = fleet.get("/reviews?state=open").await;
        let review = &reviews["items"][0];
        assert_eq!(review["kind"], "unknown_outcome", "{reviews:#}");
        let path = format!("/reviews/{}/reject", review["id"].as_str().unwrap());
        let reason = json!({"by": "ann", "reason": "I looked: it was booked"});
        let (status, body) = fleet.post(&path, &reason).await;
        assert!(status.is_success(), "{body}");
        let third = spawn(&fleet, 4, None);
        let done = fleet.wait_for(&id, &[JobState::Completed, JobState::Discarded]).await;
        drop(third);
        assert_eq!(done["state"], "completed");
        assert_eq!(fleet.tools.calls().len(), reached, "at {point}: a rejected repetition is not made");
        let prompt = &fleet.models.calls()[1].request["messages"];
        assert!(prompt.to_string().contains("outcome of this call is unknown"), "{prompt:#}");
        ends_paid_once(fleet, &id).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotent_call_is_repeated_with_the_same_key() {
    on_every_store(async |backend| {
        let (fleet, id) = crash_at(backend, "1:outcome:before", "search").await;
        assert_eq!(fleet.job(&id).await["state"], "completed");
        let calls = fleet.tools.calls();
        assert_eq!(calls.len(), 2, "on {backend:?}");
        assert_eq!(calls[0].key, calls[1].key);
        ends_paid_once(fleet, &id).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_for_one_more_request_only() {
    on_every_store(async |backend| {
        let (fleet, id) = crash_at(backend, "1:intent:after", "book").await;
        for round in 1..=2 {
            let reviews = fleet.get("/reviews?state=open").await;
            let review = reviews["items"][0]["id"].as_str().expect("a review").to_owned();
            fleet.post(&format!("/reviews/{review}/approve"), &json!({"by": "ann"})).await;
            // The approved repetition dies at the same point.
            crash(&fleet, &id, "1:intent:after").await;
            let state = &fleet.job(&id).await["state"];
            assert_eq!(
                state, "pending",
                "round {round} on {backend:?}: every repetition needs an approval of its own"
            );
        }
        assert!(fleet.tools.calls().is_empty(), "on {backend:?}");
        fleet.end().await;
    })
    .await;
}
