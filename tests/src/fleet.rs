//! A whole fleet in one process: API over real HTTP, scheduler and workers, on an SQLite file or a PostgreSQL database of its
//! own. Its models and tools are servers of the tests. Other processes may join it at its [`Place`].
//!
//! A test builds a fleet, pushes jobs, waits for their states, and ends the fleet:
//!
//! ```text
//! let fleet = Fleet::builder().on(backend).model(|_| Reply::text("done")).start().await;
//! let id = fleet.push(&job).await;
//! assert_eq!(fleet.settled(&id).await["state"], "completed");
//! fleet.end().await;
//! ```
//!
//! The time stands still until a test moves `fleet.clock`, and the scheduler's duties run only when a test calls
//! [`Fleet::tick`]. With [`FleetBuilder::in_real_time`] the fleet uses the time of its database, and [`Fleet::keep_time`] runs a
//! scheduler. The methods panic when something is not as expected, with a message for the test's output.

use crate::clock::ManualClock;
pub use crate::http::install_crypto;
use crate::model_server::{ModelServer, Reply};
use crate::place::{OwnDatabase, Place};
use crate::servers::Database;
use crate::tool_server::ToolServer;
use crate::{wait, worker};
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use turnstone_api::{Api, ApiOptions, Caps, ConfiguredKeys, Issuer, Peer, ServeLimits};
use turnstone_domain::agent::{FanOutRules, ToolRuleBook};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::review::ReviewRules;
use turnstone_domain::{Clock, JobState};
use turnstone_ojs::attest::PublicKey;
use turnstone_scheduler::{Scheduler, SchedulerOptions, WebhookSender, WebhookSenderOptions};
use turnstone_store::{EncryptionKeys, PostgresOptions, PostgresStore, Store};
use turnstone_worker::tool::{ToolPolicy, Toolbox};
use turnstone_worker::{Deps, OwnAddresses, Worker};

/// The longest time that a receiver of webhooks may take to answer. It is real time, also in a fleet with a manual clock.
const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(60);

/// The client closes connections that were idle for this long. The server closes them after 10 seconds, and a request that the
/// client sends at that moment fails.
const IDLE: Duration = Duration::from_secs(5);

/// The database of a fleet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backend {
    /// A file of its own.
    Sqlite,
    /// A database of its own on the server that the tests of this process share.
    Postgres,
}

impl Backend {
    /// All databases, for a test that has to pass on each.
    #[cfg(not(no_postgres))]
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];
    /// Only SQLite, because PostgreSQL is missing and cannot be installed.
    #[cfg(no_postgres)]
    pub const ALL: [Self; 1] = [Self::Sqlite];
}

/// The settings of a fleet that is not started yet: see [`Fleet::builder`].
pub struct FleetBuilder {
    workers: usize,
    slots: usize,
    script: Box<dyn Fn(&Value) -> Reply + Send + Sync>,
    backend: Backend,
    database: Option<Database>,
    reached_by: Option<PostgresOptions>,
    keys: Option<EncryptionKeys>,
    real_time: bool,
    private_webhooks: bool,
    mcp_servers: Vec<String>,
    reviews: ReviewRules,
    serve_limits: ServeLimits,
    drain_grace: Duration,
    require_agent: bool,
    fan_out: FanOutRules,
    issuers: Vec<Issuer>,
    trusted_keys: Vec<PublicKey>,
    caps: Caps,
    tool_rules: ToolRuleBook,
    tool_policy: Option<ToolPolicy>,
    peers: Vec<Peer>,
}

impl FleetBuilder {
    /// Adds another server that may use its agents.
    pub fn peer(mut self, peer: Peer) -> Self {
        self.peers.push(peer);
        self
    }

    /// Sets the rules for the calls of tools, in the form of `[tool_rules]` of the configuration.
    pub fn tool_rules(mut self, rules: Value) -> Self {
        self.tool_rules = serde_json::from_value(rules).expect("rules for tools");
        self
    }

    /// Sets what documents may use, in the form of `[tool_policy]` of the configuration: for registrations, and for workers
    /// that are added later. Without it, registrations are not checked and workers reach 127.0.0.1.
    pub fn tool_policy(mut self, policy: &Value) -> Self {
        self.tool_policy = Some(serde_json::from_value(policy.clone()).expect("a policy"));
        self
    }

    /// Sets the most that each tenant may create.
    pub fn caps(mut self, caps: Caps) -> Self {
        self.caps = caps;
        self
    }

    /// Verifies exports of another installation with this key, as `[attest] trusted` does.
    pub fn trusts(mut self, key: PublicKey) -> Self {
        self.trusted_keys.push(key);
        self
    }

    /// Accepts tokens of an issuer, by its section `[server.issuers.<name>]`.
    pub fn issuer(mut self, name: &str, section: Value) -> Self {
        install_crypto();
        let section = serde_json::from_value(section).expect("a section");
        self.issuers.push(Issuer::from_config(name, &section).expect("an issuer"));
        self
    }

    /// Sets the bounds for delegations, as `[agents]` and `[agents.limits.<name>]` do.
    pub fn fan_out(mut self, rules: FanOutRules) -> Self {
        self.fan_out = rules;
        self
    }

    /// Refuses jobs of agents that name no registered agent, as `[agents] require_agent` does.
    pub fn require_agent(mut self) -> Self {
        self.require_agent = true;
        self
    }

    /// Sets the longest time that a draining worker lets its turns continue. The default is short, so that a turn that hangs
    /// delays no test.
    pub fn drain_grace(mut self, grace: Duration) -> Self {
        self.drain_grace = grace;
        self
    }

    /// Sets the limits of connections to its API.
    pub fn serve_limits(mut self, serve_limits: ServeLimits) -> Self {
        self.serve_limits = serve_limits;
        self
    }

    /// Sets the reviewers, in the form of `[reviews]` of the configuration.
    pub fn reviews(mut self, rules: Value) -> Self {
        self.reviews = serde_json::from_value(rules).expect("rules for reviews");
        self.reviews.check().expect("rules that work");
        self
    }

    /// Restricts webhooks to addresses of the public internet, which is the product's default.
    pub fn public_webhooks(mut self) -> Self {
        self.private_webhooks = false;
        self
    }

    /// Sets the MCP servers that agents may name; the workers need them as well.
    pub fn mcp_servers(mut self, names: &[&str]) -> Self {
        self.mcp_servers = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Sets the kind of its database.
    pub fn on(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Puts it on a PostgreSQL database of its own.
    pub fn postgres(self) -> Self {
        self.on(Backend::Postgres)
    }

    /// Puts it on this empty database, such as one of a server that the test stops.
    pub fn on_database(mut self, database: Database) -> Self {
        self.database = Some(database);
        self
    }

    /// Sets the options by which its store connects to the PostgreSQL database: another address, or a pooler.
    pub fn reached_by(mut self, options: PostgresOptions) -> Self {
        self.reached_by = Some(options);
        self
    }

    /// Encrypts stored data with these keys.
    pub fn sealed(mut self, keys: EncryptionKeys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Uses the time of its database instead of the clock that tests move. Fleets with other processes need it.
    pub fn in_real_time(mut self) -> Self {
        self.real_time = true;
        self
    }

    /// Sets the number of workers in this process; 0 leaves the jobs to other processes.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets the answers of the model server: a function of the request's body.
    pub fn model(mut self, script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Starts everything.
    pub async fn start(self) -> Fleet {
        install_crypto();
        let database = match self.database {
            Some(database) => {
                Place::from(&database).migrate().await;
                OwnDatabase::Database(database)
            }
            None => OwnDatabase::new(self.backend).await,
        };
        let place = database.place();
        let (store, database_time) = match &self.reached_by {
            Some(options) => PostgresStore::open(options, Arc::new(SystemIds)).await.expect("the store"),
            None => place.open_sealed(self.keys.as_ref()).await.expect("the store"),
        };
        let clock = ManualClock::default();
        let time = if self.real_time { database_time } else { Arc::new(clock.clone()) };
        let (models, tools) = (ModelServer::start(self.script).await, ToolServer::start().await);
        let shutdown = CancellationToken::new();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let own = OwnAddresses::new(vec![address], &[]).expect("an address");
        let toolbox = worker::toolbox(&tools.url, Arc::clone(&time));
        let reach = self.tool_policy.clone().map(|policy| reach(policy, &toolbox, &time));
        let api = Api {
            store: store.clone(),
            clock: Arc::clone(&time),
            ids: Arc::new(SystemIds),
            tools: toolbox.specs(),
            backend: if matches!(database, OwnDatabase::File(_)) { "sqlite" } else { "postgres" }.to_owned(),
            // The receivers of the tests are on this machine.
            options: ApiOptions {
                private_webhooks: self.private_webhooks,
                require_agent: self.require_agent,
                fan_out: self.fan_out.clone(),
                issuers: self.issuers,
                trusted_keys: self.trusted_keys,
                caps: self.caps,
                reviewers: self.reviews.names(),
                separate_duties: self.reviews.duties(),
                keyless_tools: toolbox.keyless(),
                tool_rules: self.tool_rules.clone(),
                reach,
                keys: ConfiguredKeys::new(&[], &self.peers),
                mcp_servers: self.mcp_servers,
                ..ApiOptions::default()
            },
            shutdown: shutdown.clone(),
        };
        let url = format!("http://{address}");
        let router = api.router().expect("declared access");
        let serving = turnstone_api::serve(listener, None, router, self.serve_limits, shutdown.clone());
        let serving = tokio::spawn(serving);
        let mut fleet = Fleet {
            place,
            url,
            store,
            clock,
            time,
            private_webhooks: self.private_webhooks,
            reviews: self.reviews,
            drain_grace: self.drain_grace,
            fan_out: self.fan_out,
            tool_rules: self.tool_rules,
            tool_policy: self.tool_policy,
            own,
            models,
            tools,
            shutdown,
            ended: false,
            http: patient_client(),
            workers: Vec::new(),
            _serving: AbortOnDropHandle::new(serving),
            _database: database,
        };
        for _ in 0..self.workers {
            fleet.add_worker(self.slots);
        }
        fleet
    }
}

/// Returns what documents may reach by a tool policy.
fn reach(policy: ToolPolicy, toolbox: &Toolbox, time: &Arc<dyn Clock>) -> turnstone_specs::Reach {
    toolbox.clone().with_policy(policy, time).expect("a policy that works").reach()
}

fn patient_client() -> Client {
    let client = crate::http::client_builder().timeout(wait::PATIENCE).pool_idle_timeout(IDLE);
    client.build().expect("a client")
}

/// A fleet. Call [`Fleet::end`] at the end of a test: it drains the workers and asserts that no lease is held
/// and no job is lost. A fleet that is dropped before fails its test.
pub struct Fleet {
    /// The database.
    pub place: Place,
    /// The API's base URL.
    pub url: String,
    /// The store behind it.
    pub store: Store,
    /// The clock of everything in this process, unless the fleet is in real time. It starts at a fixed time.
    pub clock: ManualClock,
    time: Arc<dyn Clock>,
    private_webhooks: bool,
    reviews: ReviewRules,
    drain_grace: Duration,
    fan_out: FanOutRules,
    tool_rules: ToolRuleBook,
    /// The programs and addresses of documents, for workers that are added.
    pub tool_policy: Option<ToolPolicy>,
    /// The addresses of its api, which its tools never call.
    pub own: OwnAddresses,
    /// The model server.
    pub models: ModelServer,
    /// The tool server.
    pub tools: ToolServer,
    shutdown: CancellationToken,
    ended: bool,
    http: Client,
    workers: Vec<(CancellationToken, tokio::task::JoinHandle<()>)>,
    _serving: AbortOnDropHandle<std::io::Result<()>>,
    // The last field, because it has to be dropped after all that use it.
    _database: OwnDatabase,
}

impl Fleet {
    /// Returns the builder of a fleet with one worker of 16 slots and a model that answers `done`.
    pub fn builder() -> FleetBuilder {
        FleetBuilder {
            workers: 1,
            slots: 16,
            script: Box::new(|_| Reply::text("done")),
            backend: Backend::Sqlite,
            database: None,
            reached_by: None,
            keys: None,
            real_time: false,
            private_webhooks: true,
            mcp_servers: Vec::new(),
            reviews: ReviewRules::default(),
            serve_limits: ServeLimits::default(),
            drain_grace: worker::DRAIN_GRACE,
            require_agent: false,
            fan_out: FanOutRules::default(),
            issuers: Vec::new(),
            trusted_keys: Vec::new(),
            caps: Caps::default(),
            tool_rules: ToolRuleBook::default(),
            tool_policy: None,
            peers: Vec::new(),
        }
    }

    /// Adds a worker to this process.
    pub fn add_worker(&mut self, slots: usize) {
        self.add_worker_with(slots, |deps| deps);
    }

    /// Adds a worker; `change` may replace its parts before it starts.
    pub fn add_worker_with(&mut self, slots: usize, change: impl FnOnce(Deps) -> Deps) {
        let id = format!("worker-{}", self.workers.len());
        let store = (Arc::clone(&self.store.ledger), self.store.doorbell.clone());
        let mut deps =
            worker::deps(&id, store, Arc::clone(&self.time), &self.models.url, &self.tools.url, slots);
        deps.options.drain_grace = self.drain_grace;
        deps.options.fan_out = self.fan_out.clone();
        deps.toolbox = worker::toolbox_avoiding(self.own.clone(), &self.tools.url, Arc::clone(&self.time));
        if let Some(policy) = self.tool_policy.clone() {
            deps.toolbox = deps.toolbox.with_policy(policy, &self.time).expect("a policy of this worker");
        }
        let mut deps = change(
            deps.with_breakers(Arc::clone(&self.store.breakers))
                .with_freezes(self.store.freezes.clone())
                .with_credentials(self.store.credentials.clone())
                .with_reviews(self.reviews.clone()),
        );
        let reviewers = self.reviews.names();
        let ruled = deps.toolbox.with_rules(self.tool_rules.clone(), reviewers.as_deref());
        deps.toolbox = ruled.expect("rules for tools of this worker");
        let stop = CancellationToken::new();
        let token = stop.clone();
        let running = tokio::spawn(async move { Worker::new(deps).run(token).await.expect("the worker") });
        self.workers.push((stop, running));
    }

    /// Drains and ends all workers of this process.
    pub async fn stop_workers(&mut self) {
        for (stop, running) in self.workers.drain(..) {
            stop.cancel();
            wait::output("a worker of this process ends", running)
                .await
                .expect("a worker that does not panic");
        }
    }

    /// Runs the scheduler's duties once, at the fleet's time, and posts the pending webhooks.
    pub async fn tick(&self) {
        self.scheduler(SchedulerOptions::alone()).tick().await.expect("the duties");
    }

    /// Returns a scheduler of this fleet, in this process and at its time.
    pub fn scheduler(&self, options: SchedulerOptions) -> Scheduler {
        self.scheduler_with(options, WEBHOOK_TIMEOUT)
    }

    /// Returns a scheduler whose webhooks fail after `webhook_timeout` of real time without an answer.
    pub fn scheduler_with(&self, options: SchedulerOptions, webhook_timeout: Duration) -> Scheduler {
        let (upkeep, doorbell) = (Arc::clone(&self.store.upkeep), self.store.doorbell.clone());
        let options_of_sender =
            WebhookSenderOptions { allow_private: self.private_webhooks, timeout: webhook_timeout };
        let (time, ids) = (Arc::clone(&self.time), Arc::new(SystemIds));
        let sender = WebhookSender::new(&self.store, time, ids, &options_of_sender);
        let sender = sender.expect("a webhook sender");
        Scheduler::new(upkeep, doorbell, Arc::clone(&self.time), options)
            .with_crons(&self.store, Arc::new(SystemIds), self.fan_out.clone())
            .with_webhooks(sender)
    }

    /// Runs a scheduler until the returned handle is dropped. Only for a fleet in real time; others call [`Fleet::tick`].
    pub fn keep_time(&self) -> AbortOnDropHandle<()> {
        let scheduler = self.scheduler(SchedulerOptions::new("keeper"));
        AbortOnDropHandle::new(tokio::spawn(scheduler.run(self.shutdown.clone())))
    }

    /// Returns the time.
    pub fn now(&self) -> turnstone_domain::Timestamp {
        self.time.now()
    }

    /// Ends every lease, after the processes that held them were killed. The database may still commit the last transaction of
    /// a killed process, so this repeats until no job is active.
    pub async fn release_all(&self) {
        self.until("every lease is given back", async || {
            self.store.upkeep.release_all(self.now()).await.expect("the leases");
            self.number("SELECT count(*) FROM jobs WHERE state = 'active'").await == 0
        })
        .await;
    }

    /// Returns the number that a statement selects, read by the test's own connection.
    pub async fn number(&self, sql: &str) -> i64 {
        self.place.number(sql).await
    }

    /// Waits until the condition holds; `what` names it in the failure.
    pub async fn until(&self, what: &str, holds: impl AsyncFnMut() -> bool) {
        wait::until(what, holds).await;
    }

    /// Sends one request, and returns the status and the body. A body that is not JSON is returned as a JSON string.
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

    /// Sends a GET request, which has to succeed, and returns the body.
    pub async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, "").await;
        assert!(status.is_success(), "GET {path}: {status} {body}");
        body
    }

    /// Sends a POST request.
    pub async fn post(&self, path: &str, body: &Value) -> (StatusCode, Value) {
        self.send(Method::POST, path, body.to_string()).await
    }

    /// Enqueues a job and returns its id.
    pub async fn push(&self, job: &Value) -> String {
        let (status, body) = self.post("/ojs/v1/jobs", job).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        body["job"]["id"].as_str().expect("an id").to_owned()
    }

    /// Returns the job, as the API does.
    pub async fn job(&self, id: &str) -> Value {
        self.get(&format!("/ojs/v1/jobs/{id}")).await["job"].clone()
    }

    /// Waits until the job is in one of these states and returns it.
    pub async fn wait_for(&self, id: &str, states: &[JobState]) -> Value {
        let mut job = Value::Null;
        let reached = wait::holds(wait::PATIENCE, async || {
            job = self.job(id).await;
            states.iter().any(|state| job["state"] == state.as_str())
        });
        assert!(reached.await, "job {id} is not {states:?} after {:?}: {job:#}", wait::PATIENCE);
        job
    }

    /// Waits until no worker has the job: it has ended, is parked, or waits for its retry. Returns it.
    pub async fn settled(&self, id: &str) -> Value {
        use JobState::{Cancelled, Completed, Discarded, Pending, Retryable};
        self.wait_for(id, &[Completed, Discarded, Cancelled, Pending, Retryable]).await
    }

    /// Registers the document of an agent, which has to succeed, and returns the body of the response.
    pub async fn register(&self, document: impl Into<String>) -> Value {
        let document = document.into();
        let (status, body) = self.send(Method::POST, "/agents", document.clone()).await;
        assert!(status.is_success(), "{document}: {status} {body:#}");
        body
    }

    /// Registers several documents, in order.
    pub async fn register_all<T: AsRef<str>>(&self, documents: &[T]) {
        for document in documents {
            self.register(document.as_ref()).await;
        }
    }

    /// Returns the data of the job's events of one name, in order.
    pub async fn events_named(&self, id: &str, name: &str) -> Vec<Value> {
        self.data_of(&format!("/ojs/v1/jobs/{id}/events?limit=1000"), name).await
    }

    /// Returns the data of an engagement's events of one name, in order.
    pub async fn engagement_events(&self, engagement: &str, name: &str) -> Vec<Value> {
        self.data_of(&format!("/engagements/{engagement}/events?limit=1000"), name).await
    }

    async fn data_of(&self, path: &str, name: &str) -> Vec<Value> {
        let page = self.get(path).await;
        let events = page["events"].as_array().unwrap_or_else(|| panic!("{path}: {page:#}"));
        events.iter().filter(|event| event["name"] == name).map(|event| event["data"].clone()).collect()
    }

    /// Returns the names of the job's events, in order.
    pub async fn event_names(&self, id: &str) -> Vec<String> {
        let events = self.get(&format!("/ojs/v1/jobs/{id}/events")).await;
        let events = events["events"].as_array().cloned().unwrap_or_default();
        events.iter().filter_map(|event| event["name"].as_str().map(str::to_owned)).collect()
    }

    /// Returns the engagement of an agent job.
    pub async fn engagement_of(&self, id: &str) -> String {
        self.job(id).await["ext_agent_engagement_id"].as_str().expect("an engagement").to_owned()
    }

    /// Drains the workers, ends the fleet and checks its invariants: see [`Place::check`].
    pub async fn end(mut self) {
        self.stop_workers().await;
        self.place.check().await;
        self.shutdown.cancel();
        self.ended = true;
    }

    /// Drains the workers and ends the fleet, and checks no invariants. Use it only where a test damaged the data, or left leases
    /// of workers that are not Turnstone's.
    pub async fn end_unchecked(mut self) {
        self.stop_workers().await;
        self.shutdown.cancel();
        self.ended = true;
    }
}

impl Drop for Fleet {
    /// Fails a test that would leave the invariants unchecked. A test that failed already keeps its own message.
    fn drop(&mut self) {
        assert!(
            self.ended || std::thread::panicking(),
            "end this fleet with Fleet::end, which checks its invariants"
        );
    }
}
