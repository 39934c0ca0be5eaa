//! A whole fleet in one process: api over real HTTP, scheduler, workers, on an SQLite file of its own.

use crate::clock::ManualClock;
use crate::model_server::{ModelServer, Reply};
use crate::tool_server::ToolServer;
use crate::worker;
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_api::{Api, ApiOptions};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Clock, JobState};
use turnstone_scheduler::{Scheduler, SchedulerOptions};
use turnstone_store::{SqliteStore, Store};
use turnstone_worker::{Deps, Worker};

/// How often the fleet looks whether what a test waits for has happened.
const LOOK: Duration = Duration::from_millis(10);
/// A test that waits longer than this has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Builds a fleet.
pub struct FleetBuilder {
    workers: usize,
    slots: usize,
    script: Box<dyn Fn(&Value) -> Reply + Send + Sync>,
}

impl FleetBuilder {
    /// How many workers run in this process; 0 leaves the jobs to somebody else.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// What the model server answers.
    pub fn model(mut self, script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Starts everything.
    pub async fn start(self) -> Fleet {
        install_crypto();
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("turnstone.db");
        let store = SqliteStore::open(&path, Arc::new(SystemIds)).await.expect("the store");
        let clock = ManualClock::default();
        let (models, tools) = (ModelServer::start(self.script).await, ToolServer::start().await);
        let shutdown = CancellationToken::new();
        let toolbox = worker::toolbox(&tools.url, Arc::new(clock.clone()));
        let api = Api {
            store: store.clone(),
            clock: Arc::new(clock.clone()),
            ids: Arc::new(SystemIds),
            tools: toolbox.specs(),
            backend: "sqlite".to_owned(),
            options: ApiOptions::default(),
            shutdown: shutdown.clone(),
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let serving = tokio::spawn(turnstone_api::serve(listener, api.router(), shutdown.clone()));
        let mut fleet = Fleet {
            _dir: dir,
            path,
            url,
            store,
            clock,
            models,
            tools,
            shutdown,
            http: Client::builder().no_proxy().build().expect("a client"),
            workers: Vec::new(),
            _serving: AbortOnDropHandle::new(serving),
        };
        for _ in 0..self.workers {
            fleet.add_worker(self.slots);
        }
        fleet
    }
}

/// A fleet. Call [`Fleet::end`] at the end of a test: it drains the workers and asserts that no lease is held and no
/// job is lost.
pub struct Fleet {
    _dir: tempfile::TempDir,
    /// The database file.
    pub path: PathBuf,
    /// The api's base URL.
    pub url: String,
    /// The store behind it.
    pub store: Store,
    /// The time of everything in this process.
    pub clock: ManualClock,
    /// The model server.
    pub models: ModelServer,
    /// The tool server.
    pub tools: ToolServer,
    shutdown: CancellationToken,
    http: Client,
    workers: Vec<(CancellationToken, tokio::task::JoinHandle<()>)>,
    _serving: AbortOnDropHandle<std::io::Result<()>>,
}

/// Installs the TLS provider once; reqwest wants it even for plain HTTP.
pub fn install_crypto() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

impl Fleet {
    /// A fleet with one worker of 16 slots and a model that says `done`.
    pub fn builder() -> FleetBuilder {
        FleetBuilder { workers: 1, slots: 16, script: Box::new(|_| Reply::text("done")) }
    }

    /// Adds a worker to this process.
    pub fn add_worker(&mut self, slots: usize) {
        self.add_worker_with(slots, |deps| deps);
    }

    /// Adds a worker whose parts are changed before it starts.
    pub fn add_worker_with(&mut self, slots: usize, change: impl FnOnce(Deps) -> Deps) {
        let id = format!("worker-{}", self.workers.len());
        let (ledger, clock) = (Arc::clone(&self.store.ledger), Arc::new(self.clock.clone()));
        let store = (ledger, self.store.doorbell.clone());
        let deps = worker::deps(&id, store, clock, &self.models.url, &self.tools.url, slots);
        let deps = change(deps);
        let stop = CancellationToken::new();
        let token = stop.clone();
        let running = tokio::spawn(async move { Worker::new(deps).run(token).await.expect("the worker") });
        self.workers.push((stop, running));
    }

    /// Drains and ends all workers of this process.
    pub async fn stop_workers(&mut self) {
        for (stop, running) in self.workers.drain(..) {
            stop.cancel();
            running.await.expect("the worker ends");
        }
    }

    /// Runs the scheduler's duties once.
    pub async fn tick(&self) {
        self.scheduler(SchedulerOptions::alone()).tick().await.expect("the duties");
    }

    /// A scheduler of this fleet, in this process and at its time.
    pub fn scheduler(&self, options: SchedulerOptions) -> Scheduler {
        let (upkeep, doorbell) = (Arc::clone(&self.store.upkeep), self.store.doorbell.clone());
        Scheduler::new(upkeep, doorbell, Arc::new(self.clock.clone()), options)
    }

    /// The time.
    pub fn now(&self) -> turnstone_domain::Timestamp {
        self.clock.now()
    }

    /// One request; the body may be anything.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> (StatusCode, Value) {
        let request = self.http.request(method, format!("{}{path}", self.url)).body(body);
        let answer = request.header("content-type", "application/json").send().await.expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a body");
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, "").await;
        assert!(status.is_success(), "GET {path}: {status} {body}");
        body
    }

    /// POST.
    pub async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.send(Method::POST, path, body.to_string()).await
    }

    /// Enqueues a job and returns its id.
    pub async fn push(&self, job: &Value) -> String {
        let (status, body) = self.post("/ojs/v1/jobs", job).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        body["job"]["id"].as_str().expect("an id").to_owned()
    }

    /// The job as the api shows it.
    pub async fn job(&self, id: &str) -> Value {
        self.get(&format!("/ojs/v1/jobs/{id}")).await["job"].clone()
    }

    /// Waits until the job is in one of these states and returns it.
    pub async fn wait_for(&self, id: &str, states: &[JobState]) -> Value {
        let began = std::time::Instant::now();
        loop {
            let job = self.job(id).await;
            if states.iter().any(|state| job["state"] == state.as_str()) {
                return job;
            }
            assert!(
                began.elapsed() < PATIENCE,
                "job {id} is still {} after {PATIENCE:?}: {job:#}",
                job["state"]
            );
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until the job has ended or waits for somebody.
    pub async fn settled(&self, id: &str) -> Value {
        use JobState::{Cancelled, Completed, Discarded, Pending, Retryable};
        self.wait_for(id, &[Completed, Discarded, Cancelled, Pending, Retryable]).await
    }

    /// Names of the job's events, in order.
    pub async fn event_names(&self, id: &str) -> Vec<String> {
        let events = self.get(&format!("/ojs/v1/jobs/{id}/events")).await;
        let events = events["events"].as_array().cloned().unwrap_or_default();
        events.iter().filter_map(|event| event["name"].as_str().map(str::to_owned)).collect()
    }

    /// The engagement of an agent job.
    pub async fn engagement_of(&self, id: &str) -> String {
        self.job(id).await["ext_agent_engagement_id"].as_str().expect("an engagement").to_owned()
    }

    /// Ends the fleet and checks its invariants: no lease is held, no reservation is left behind, and every phase of
    /// every complete turn was committed exactly once.
    pub async fn end(mut self) {
        self.stop_workers().await;
        check(&self.path).await;
        self.shutdown.cancel();
    }
}

/// The invariants of a database that no worker uses.
pub async fn check(path: &Path) {
    for (what, sql) in [
        ("jobs are active without a worker", "SELECT count(*) FROM jobs WHERE state = 'active'"),
        ("reservations are left behind", "SELECT count(*) FROM budgets WHERE reserved <> 0"),
        (
            "budgets differ from what their jobs used",
            "SELECT count(*) FROM budgets b JOIN engagements e ON e.budget_seq = b.seq WHERE b.settled <> (SELECT sum(tokens_used) FROM jobs j WHERE j.engagement_seq = e.seq)",
        ),
        (
            "budgets differ from what their checkpoints say",
            "SELECT count(*) FROM budgets b JOIN engagements e ON e.budget_seq = b.seq WHERE b.settled <> (SELECT coalesce(sum(c.tokens_in + c.tokens_out), 0) FROM checkpoints c JOIN jobs j ON j.seq = c.job_seq WHERE j.engagement_seq = e.seq)",
        ),
        (
            "turns of completed jobs have not seven phases",
            "SELECT count(*) FROM (SELECT c.job_seq FROM checkpoints c JOIN jobs j ON j.seq = c.job_seq WHERE j.state = 'completed' GROUP BY c.job_seq, c.turn HAVING count(*) <> 7)",
        ),
        (
            "streams of events have gaps",
            "SELECT count(*) FROM (SELECT stream FROM events GROUP BY stream HAVING max(seq) <> count(*))",
        ),
        (
            "conversations have gaps",
            "SELECT count(*) FROM (SELECT engagement_seq FROM messages GROUP BY engagement_seq HAVING max(seq) <> count(*))",
        ),
    ] {
        let output = sqlite(path, sql).await;
        assert_eq!(output, 0, "{what}");
    }
}

/// One number out of the database, read from outside of the product.
pub async fn sqlite(path: &Path, sql: &str) -> i64 {
    crate::binaries::scalar(path, sql).await
}
