//! An API process and six worker processes over one database; something breaks in every round.

use super::configured;
use crate::crash::spawn_with_lease;
use crate::program::Program;
use crate::random::Random;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;
use tokio::process::ChildStdin;
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;
use turnstone_tests::insist::insist;
use turnstone_tests::processes::Process;
use turnstone_tests::servers::Postgres;
use turnstone_tests::wait::{until, until_within};
use turnstone_tests::{Fleet, Reply, wait};

const WORKERS: usize = 6;
const SLOTS: usize = 8;
const LEASE_MS: u64 = 3_000;
/// The most workers that are paused at once.
const ASLEEP: usize = 4;
/// About the most jobs that wait for their first turn, so that the API is needed until the end.
const AHEAD: usize = 40;
/// One of so many jobs has a budget that it exhausts.
const POOR: usize = 20;

const UNSETTLED: &str =
    "SELECT count(*) FROM jobs WHERE state NOT IN ('completed', 'discarded', 'cancelled', 'pending')";

/// The tool calls of a job, one per turn.
fn plan(n: usize) -> &'static [&'static str] {
    if is_poor(n) {
        return &["search", "search", "search", "search"];
    }
    match n % 4 {
        0 => &["book"],
        1 => &["search", "book"],
        2 => &["book", "search", "book"],
        _ => &["search"],
    }
}

fn is_poor(n: usize) -> bool {
    n % POOR == POOR - 1
}

/// Returns the cost of the model's answer in a turn: no two turns of a job cost the same.
fn cost(n: usize, turn: usize) -> (i64, i64) {
    let (n, turn) = (i64::try_from(n % 7).unwrap(), i64::try_from(turn).unwrap());
    (20 + n, 5 + turn)
}

/// Returns the cost of a turn of a poor job, which exceeds its budget.
fn poor_cost(turn: usize) -> (i64, i64) {
    (300, 100 + i64::try_from(turn).unwrap())
}

fn price(n: usize, turn: usize) -> (i64, i64) {
    if is_poor(n) { poor_cost(turn) } else { cost(n, turn) }
}

fn number_of(input: &str) -> usize {
    input.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("a job's number")
}

fn answer(request: &Value) -> Reply {
    let requested = turnstone_tests::model_server::ModelCall { request: request.clone(), reported: 0 };
    let (n, turn) = (number_of(requested.input()), requested.outcomes());
    match plan(n).get(turn) {
        Some(tool) => {
            let arguments = json!({"job": n, "turn": turn});
            Reply::Calls(vec![((*tool).to_owned(), arguments)], price(n, turn))
        }
        None => Reply::Text("done".to_owned(), price(n, turn)),
    }
}

fn job(n: usize, id: &str) -> Value {
    let budget = if is_poor(n) { 900 } else { 50_000 };
    json!({"id": id, "type": "agent.chaos", "args": [format!("job {n}")], "ext_agent_model": "m",
           "ext_agent_token_budget": budget, "ext_agent_tools": [{"name": "search"}, {"name": "book"}],
           "options": {"retry": {"max_attempts": 2, "initial_interval": "PT0.1S", "jitter": false}}})
}

/// The worker processes of the run.
struct Crew<'a> {
    fleet: &'a Fleet,
    awake: Vec<Worker>,
    asleep: Vec<Worker>,
}

struct Worker {
    process: Process,
    // The worker ends when this is closed.
    stdin: ChildStdin,
}

impl Worker {
    fn signal(&self, name: &str) {
        let pid = self.process.id().expect("a running process").to_string();
        assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
    }

    async fn leave(self) {
        let Self { mut process, stdin } = self;
        drop(stdin);
        let status = wait::output("a worker ends on request", process.wait()).await.unwrap();
        assert!(status.success(), "a worker that was not killed ended with {status}");
    }
}

impl<'a> Crew<'a> {
    fn new(fleet: &'a Fleet) -> Self {
        let mut crew = Self { fleet, awake: Vec::new(), asleep: Vec::new() };
        crew.fill_up();
        crew
    }

    fn fill_up(&mut self) {
        while self.awake.len() < WORKERS {
            let mut process = spawn_with_lease(self.fleet, SLOTS, LEASE_MS, None);
            let stdin = process.stdin.take().expect("a pipe");
            self.awake.push(Worker { process, stdin });
        }
    }

    async fn kill(&mut self, at: usize) {
        let mut worker = self.awake.swap_remove(at);
        worker.process.kill().await.expect("SIGKILL");
        self.fill_up();
    }

    fn pause(&mut self, at: usize) {
        let worker = self.awake.swap_remove(at);
        worker.signal("STOP");
        self.asleep.push(worker);
        self.fill_up();
    }

    async fn wake(&mut self, at: usize) {
        let worker = self.asleep.swap_remove(at);
        worker.signal("CONT");
        self.awake.push(worker);
        self.awake.swap_remove(0).leave().await;
        self.fill_up();
    }
}

/// The process that accepts jobs, always at the same address.
struct Api<'a> {
    fleet: &'a Fleet,
    folder: tempfile::TempDir,
    bind: String,
    program: RefCell<Option<Program>>,
}

impl<'a> Api<'a> {
    async fn start(fleet: &'a Fleet) -> Self {
        let (folder, bind) = (configured(fleet), "127.0.0.1:0".to_owned());
        let mut api = Self { fleet, folder, bind, program: RefCell::default() };
        api.bind = api.listen().await;
        api
    }

    /// Starts a process, and returns its address.
    async fn listen(&self) -> String {
        let place = self.fleet.place.to_string();
        let (arguments, environment) = (["api", "--bind", &self.bind], [("DATABASE_URL", place.as_str())]);
        let mut program = Program::start(self.folder.path(), &arguments, &environment);
        let address = program.first_line("turnstone listens on http://").await;
        self.program.replace(Some(program));
        address
    }

    /// Kills the process and starts another one. Returns when it listens: it ends when the database is down at its start,
    /// and nothing here starts it a third time.
    async fn kill(&self) {
        let mut program = self.program.take().expect("a running api");
        program.signal("KILL");
        assert_eq!(program.ended().await, None, "{}", program.warned());
        self.listen().await;
    }

    /// Enqueues jobs, a few ahead of the workers. A request without an answer is repeated under the same id.
    async fn enqueue(&self, jobs: usize) {
        let http = turnstone_tests::http::client();
        let url = format!("http://{}/ojs/v1/jobs", self.bind);
        for n in 0..jobs {
            let job = job(n, &SystemIds.next());
            let (status, answer) = insist(&http, reqwest::Method::POST, &url, &job).await;
            // 409: an earlier request was accepted, and its answer was lost.
            assert!(matches!(status, 201 | 409), "{answer}");
            self.fleet.models.seen(n.saturating_sub(AHEAD)).await;
        }
    }
}

/// One round of chaos.
async fn break_something(
    crew: &mut Crew<'_>,
    api: &Api<'_>,
    postgres: &Postgres,
    random: &mut Random,
) -> &'static str {
    match random.below(12) {
        10.. => {
            api.kill().await;
            "the api is killed"
        }
        0..=3 => {
            crew.kill(random.below(WORKERS)).await;
            "a worker is killed"
        }
        4..=6 if crew.asleep.len() < ASLEEP => {
            crew.pause(random.below(WORKERS));
            "a worker is paused"
        }
        7 if !crew.asleep.is_empty() => {
            let at = random.below(crew.asleep.len());
            crew.wake(at).await;
            "a worker wakes up, another one leaves"
        }
        _ => {
            postgres.restart_immediate().await;
            "the database restarts"
        }
    }
}

/// Waits for so many model calls, or until no job is left.
async fn continues(fleet: &Fleet, calls: usize, jobs: usize) {
    until("the jobs continue", async || {
        let requested = tokio::time::timeout(Duration::from_millis(250), fleet.models.seen(calls)).await;
        requested.is_ok() || is_over(fleet, jobs).await
    })
    .await;
}

/// Every job was accepted, and has ended or is parked.
async fn is_over(fleet: &Fleet, jobs: usize) -> bool {
    let accepted = fleet.number("SELECT count(*) FROM jobs").await;
    usize::try_from(accepted).is_ok_and(|accepted| accepted >= jobs) && fleet.number(UNSETTLED).await == 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_fleet_survives_chaos() {
    survive(100, 8).await;
}

#[ignore = "long: 2,000 engagements and 32 faults"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_fleet_survives_chaos() {
    survive(2_000, 32).await;
}

/// Runs a bounded number of rounds and checks invariants at the end. `TURNSTONE_CHAOS_SEED` sets the seed, and a
/// failed run names its seed.
async fn survive(jobs: usize, rounds: usize) {
    let seed =
        std::env::var("TURNSTONE_CHAOS_SEED").map_or(20_261_121, |seed| seed.parse().expect("a number"));
    let mut random = Random::new(seed);
    println!("{jobs} engagements, seed {seed}");
    let postgres = Postgres::own_with(&[("max_connections", "200")]).await;
    let database = postgres.database().await;
    let fleet = Fleet::builder().on_database(database).in_real_time().workers(0).model(answer).start().await;
    let time = fleet.keep_time();
    let api = Api::start(&fleet).await;
    let mut crew = Crew::new(&fleet);
    let chaos = async {
        let mut calls = 0;
        for round in 1..=rounds {
            calls += random.below(2 * 2 * jobs / rounds);
            continues(&fleet, calls, jobs).await;
            let broken = break_something(&mut crew, &api, &postgres, &mut random).await;
            println!("round {round:>2}, {} calls: {broken}", fleet.models.count());
        }
    };
    tokio::join!(api.enqueue(jobs), chaos);
    until_within("every job has ended or is parked", Duration::from_secs(300), async || {
        is_over(&fleet, jobs).await
    })
    .await;
    println!("no job is left");
    let Crew { awake, asleep, .. } = crew;
    for worker in awake {
        worker.leave().await;
    }
    let events = fleet.number(turnstone_tests::journal::EVENTS).await;
    for worker in asleep {
        worker.signal("CONT");
        worker.leave().await;
    }
    assert_eq!(
        fleet.number(turnstone_tests::journal::EVENTS).await,
        events,
        "a worker that overslept wrote something"
    );
    drop((time, api));
    invariants(&fleet, jobs).await;
    fleet.end().await;
}

/// The outcome of a job.
#[derive(Debug)]
struct Fate {
    n: usize,
    state: String,
    attempts: usize,
    failures: i64,
    /// The booked tokens.
    booked: i64,
    /// The number of turns with a durable answer.
    answers: usize,
}

async fn fates(fleet: &Fleet) -> Vec<Fate> {
    let sql = "SELECT e.args, j.state, j.attempt, j.failures, j.tokens_used, \
               (SELECT count(*) FROM journal v WHERE v.job_seq = j.seq AND v.phase <= 3 AND v.phase + v.phases > 3) \
               FROM jobs j JOIN job_envelopes e ON e.job_seq = j.seq ORDER BY j.seq";
    let rows: Vec<(String, String, i64, i64, i64, i64)> = fleet.place.rows(sql).await;
    let fate = |(args, state, attempts, failures, booked, answers): (String, String, i64, i64, i64, i64)| {
        let args: Vec<String> = serde_json::from_str(&args).unwrap();
        let count = |number: i64| usize::try_from(number).unwrap();
        Fate {
            n: number_of(&args[0]),
            state,
            attempts: count(attempts),
            failures,
            booked,
            answers: count(answers),
        }
    };
    rows.into_iter().map(fate).collect()
}

async fn invariants(fleet: &Fleet, jobs: usize) {
    let mut requested: HashMap<usize, HashMap<usize, usize>> = HashMap::new();
    for call in fleet.models.calls() {
        *requested.entry(number_of(call.input())).or_default().entry(call.outcomes()).or_default() += 1;
    }
    let fates = fates(fleet).await;
    assert_eq!(fates.len(), jobs, "jobs were lost, or accepted twice");
    let over = "SELECT count(*) FROM totals WHERE settled + reserved > token_limit";
    assert_eq!(fleet.number(over).await, 0, "budgets were overspent");
    let mut states: HashMap<String, usize> = HashMap::new();
    let (mut paid, mut lost) = (0, 0);
    for fate in &fates {
        let Fate { n, state, attempts, failures, booked, answers } = fate;
        *states.entry(state.clone()).or_default() += 1;
        let is_right = match state.as_str() {
            "completed" => *answers == plan(*n).len() + 1 && *failures == 0,
            // A call with an unknown outcome waits for a reviewer.
            "pending" => plan(*n)[*answers - 1] == "book" && *failures == 0,
            "discarded" => is_poor(*n) && *failures == 2,
            _ => false,
        };
        assert!(is_right, "{fate:?}");
        // Every durable answer was booked once, with the provider's counts. Only the last call of an attempt can be
        // lost.
        let booked_for: i64 = (0..*answers).map(|turn| price(*n, turn)).map(|(i, o)| i + o).sum();
        assert_eq!(*booked, booked_for, "{fate:?}");
        let calls = &requested[n];
        assert!((0..*answers).all(|turn| calls.contains_key(&turn)), "an answer without a call: {fate:?}");
        let made: usize = calls.values().sum();
        assert!((*answers..answers + attempts).contains(&made), "{made} calls for {fate:?}");
        (paid, lost) = (paid + booked, lost + made - answers);
    }
    println!(
        "{states:?}; {paid} tokens booked; {lost} answers of {} were lost with their workers",
        fleet.models.count()
    );
    let poor = (0..jobs).filter(|n| is_poor(*n)).count();
    assert_eq!(states.get("discarded").copied().unwrap_or(0), poor, "{states:?}");
    tools(fleet);
}

/// A call that is not idempotent reached its tool at most once, and no call reached it under two keys.
fn tools(fleet: &Fleet) {
    let mut keys: HashMap<String, Vec<String>> = HashMap::new();
    for call in fleet.tools.calls() {
        keys.entry(format!("{} {}", call.tool, call.input)).or_default().push(call.key);
    }
    for (call, mut keys) in keys {
        assert!(call.starts_with("search") || keys.len() == 1, "{call} was made {} times", keys.len());
        keys.dedup();
        assert_eq!(keys.len(), 1, "{call} was made under several keys");
    }
}
