//! A worker process is killed with SIGKILL before and after the commit of each phase, and around a tool call, on either
//! database.

mod budgets;
mod cutting;
mod guardrails;
mod urgent;

use futures::future::join_all;
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::process::Command;
use turnstone_domain::{JobState, Phase};
use turnstone_tests::processes::{self, Process};
use turnstone_tests::{Backend, Fleet, Reply, binaries, model_server, wait};

/// Prices of a worker for which nothing costs anything.
const FREE: &str = "{}";

/// Starts a worker process over the fleet's database; it dies at `point`. Its leases outlast most tests.
pub fn spawn(fleet: &Fleet, slots: usize, point: Option<&str>) -> Process {
    spawn_with_lease(fleet, slots, 15_000, point)
}

/// The same with leases of this length.
pub fn spawn_with_lease(fleet: &Fleet, slots: usize, lease_ms: u64, point: Option<&str>) -> Process {
    start(fleet, slots, lease_ms, FREE, point)
}

/// The same with these prices.
fn start(fleet: &Fleet, slots: usize, lease_ms: u64, prices: &str, point: Option<&str>) -> Process {
    let mut command = Command::new(binaries::crash_worker());
    command
        .arg(fleet.place.to_string())
        .args([&fleet.models.url, &fleet.tools.url])
        .args([slots.to_string(), lease_ms.to_string()])
        .arg(prices)
        .args(point)
        .stdin(Stdio::piped());
    processes::start(&mut command)
}

/// Waits until a worker process is killed with SIGKILL: by itself at its point, or by the test.
pub async fn killed(mut worker: Process) {
    // `wait` closes the standard input, and that would end the worker.
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

/// First a call of `tool`, then the result.
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

/// A worker takes the job and dies at `point`; another one takes it as far as it gets.
pub async fn crash(fleet: &Fleet, id: &str, point: &str) {
    die(fleet, 4, FREE, point).await;
    replace(fleet, 4, FREE, id).await;
}

/// A worker takes the jobs and dies at `point`.
async fn die(fleet: &Fleet, slots: usize, prices: &str, point: &str) {
    killed(start(fleet, slots, 15_000, prices, Some(point))).await;
}

/// Another worker takes the job of a dead one as far as it gets.
async fn replace(fleet: &Fleet, slots: usize, prices: &str, id: &str) {
    // The dead worker's lease would run out; nobody else lives, so it can be ended now.
    fleet.release_all().await;
    let worker = start(fleet, slots, 15_000, prices, None);
    fleet.wait_for(id, &[JobState::Completed, JobState::Discarded, JobState::Pending]).await;
    drop(worker);
}

/// Runs one job with a crash at `point` and returns the fleet and the job's id, after it has settled elsewhere.
async fn crash_at(backend: Backend, point: &str, tool: &'static str) -> (Fleet, String) {
    let (fleet, id) = with_a_job(backend, tool).await;
    crash(&fleet, &id, point).await;
    (fleet, id)
}

/// What must hold wherever the worker died.
async fn assert_paid_once(fleet: &Fleet, id: &str, point: &str) {
    let done = fleet.job(id).await;
    let checkpointed = fleet.number(&turnstone_tests::journal::phases(3)).await;
    let calls = fleet.models.calls();
    // Only a call whose answer never became durable may be seen twice: the crash before INFER's commit.
    let lost = usize::from(point.ends_with("infer:before"));
    assert_eq!(calls.len(), usize::try_from(checkpointed).unwrap() + lost, "model calls at {point}");
    let reported: i64 = calls.iter().map(|call| call.reported).sum();
    let turn: usize = point.split(':').next().unwrap().parse().unwrap();
    let unheard = if lost == 1 { calls[turn - 1].reported } else { 0 };
    assert_eq!(done["ext_agent_tokens_used"], reported - unheard, "tokens at {point} in {}", fleet.place);
    fleet.place.check().await;
}

/// A crash at this point. After the last settlement nobody needs to go on; the worker dies all the same.
async fn goes_on_after(backend: Backend, point: &str) {
    let (fleet, id) = crash_at(backend, point, "book").await;
    let done = fleet.job(&id).await;
    assert_eq!(done["state"], "completed", "at {point} on {backend:?}: {done:#}");
    let calls = fleet.tools.calls().len();
    assert_eq!(calls, 1, "a call that is not idempotent, at {point} on {backend:?}");
    assert_paid_once(&fleet, &id, point).await;
}

/// Before and after the commit of each phase of a turn.
fn points_of(turn: i64) -> Vec<String> {
    let phases = Phase::ALL.into_iter();
    phases.flat_map(|phase| ["before", "after"].map(|when| format!("{turn}:{phase}:{when}"))).collect()
}

/// Each point on one of the databases, so that either one has points before and after commits.
fn shared_out(points: &[impl AsRef<str>]) -> impl Iterator<Item = (Backend, &str)> {
    let backends = [Backend::Sqlite, Backend::Postgres, Backend::Postgres, Backend::Sqlite];
    backends.into_iter().cycle().zip(points.iter().map(AsRef::as_ref))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_goes_on_after_each_of_the_fourteen_points() {
    for (backend, point) in shared_out(&points_of(1)) {
        goes_on_after(backend, point).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_goes_on_in_the_last_turn_too() {
    for (backend, point) in shared_out(&["2:infer:before", "2:infer:after", "2:emit:before", "2:emit:after"])
    {
        goes_on_after(backend, point).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: every point of two turns on both databases, 56 killed processes"]
async fn a_killed_worker_goes_on_after_every_point_on_both_databases() {
    on_every_store(async |backend| {
        for point in points_of(1).iter().chain(&points_of(2)) {
            goes_on_after(backend, point).await;
        }
    })
    .await;
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
        let told = &fleet.models.calls()[1].request["messages"];
        assert!(told.to_string().contains("outcome of this call is unknown"), "{told:#}");
        assert_paid_once(&fleet, &id, point).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotent_call_is_made_again_with_the_same_key() {
    on_every_store(async |backend| {
        let (fleet, id) = crash_at(backend, "1:outcome:before", "search").await;
        assert_eq!(fleet.job(&id).await["state"], "completed");
        let calls = fleet.tools.calls();
        assert_eq!(calls.len(), 2, "on {backend:?}");
        assert_eq!(calls[0].key, calls[1].key);
        assert_paid_once(&fleet, &id, "1:outcome:before").await;
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
            // The approved repetition dies in the same way.
            crash(&fleet, &id, "1:intent:after").await;
            let state = &fleet.job(&id).await["state"];
            assert_eq!(
                state, "pending",
                "round {round} on {backend:?}: every repetition needs an approval of its own"
            );
        }
        assert!(fleet.tools.calls().is_empty(), "on {backend:?}");
    })
    .await;
}
