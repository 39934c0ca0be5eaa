//! The disk of the database is full while jobs are accepted, while an answer is known, and at a restart. Nothing that
//! was accepted is lost, and everything continues when there is room.

use crate::faults::site::Site;
use crate::program::{Program, run};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;
use turnstone_tests::small_disk::SmallDisk;
use turnstone_tests::wait::{ends, until, until_within};
use turnstone_tests::{Gate, ModelServer, Reply};

/// A second, and one more on a busy machine.
const SOON: Duration = Duration::from_secs(2);
/// The room of a database and of what a test writes, in MiB.
const ROOM: usize = 160;

/// A server whose database is on a small disk.
struct Scene {
    disk: SmallDisk,
    models: Arc<ModelServer>,
    gate: Gate,
    http: Client,
    /// The folder of the processes.
    folder: PathBuf,
    url: String,
    env: Vec<(&'static str, String)>,
    /// The address; it stays the same over a restart.
    bind: String,
    accepted: Vec<String>,
}

fn model(gate: &Gate) -> impl Fn(&Value) -> Reply + Send + Sync + 'static + use<> {
    let gate = gate.clone();
    move |request| match request.to_string().contains("slow") {
        true => Reply::text("done").behind(&gate),
        false => Reply::text("done"),
    }
}

impl Scene {
    async fn get(&self, path: &str) -> (StatusCode, String) {
        let answer = self.http.get(format!("{}{path}", self.url)).send().await.expect("an answer");
        (answer.status(), answer.text().await.unwrap_or_default())
    }

    async fn state(&self, id: &str) -> String {
        let (status, body) = self.get(&format!("/ojs/v1/jobs/{id}")).await;
        assert_eq!(status, StatusCode::OK, "a read is refused: {body}");
        let body: Value = serde_json::from_str(&body).unwrap();
        body["job"]["state"].as_str().unwrap().to_owned()
    }

    /// Enqueues a job; returns its id when it is accepted.
    async fn push(&self, input: &str) -> Option<String> {
        let id = SystemIds.next();
        let status = send(self.http.clone(), self.url.clone(), id.clone(), input.to_owned()).await;
        (status == Some(201)).then_some(id)
    }

    /// Fills the disk and enqueues until writes are refused, which `/readyz` and `doctor` say.
    async fn fill(&mut self) -> JoinSet<(String, Option<u16>)> {
        self.disk.fill();
        let mut pushes = JoinSet::new();
        let filler = "x".repeat(20_000);
        until("/readyz says that nothing can be written", async || {
            for _ in 0..20 {
                let (http, url, id) = (self.http.clone(), self.url.clone(), SystemIds.next());
                let input = filler.clone();
                pushes.spawn(async move { (id.clone(), send(http, url, id, input).await) });
            }
            self.get("/readyz").await.0 == StatusCode::SERVICE_UNAVAILABLE
        })
        .await;
        let env: Vec<(&str, &str)> = self.env.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let ran = run(&self.folder, &["doctor"], &env).await;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stdout.contains("make room"), "{ran:?}");
        pushes
    }

    /// Makes room, and asserts that a job is soon accepted and that all that were accepted complete.
    async fn free(&mut self, mut pushes: JoinSet<(String, Option<u16>)>) {
        self.disk.free();
        let pushed = ends(SOON, self.push("again")).await.flatten();
        self.accepted.push(pushed.expect("a job is accepted within a second"));
        until_within("/readyz is well", SOON, async || self.get("/readyz").await.0 == StatusCode::OK).await;
        while let Some(pushed) = pushes.join_next().await {
            if let (id, Some(201)) = pushed.expect("a client") {
                self.accepted.push(id);
            }
        }
        for id in &self.accepted {
            until("every accepted job completes", async || self.state(id).await == "completed").await;
        }
    }

    /// The disk is full while jobs are accepted and while an answer is known.
    async fn fill_while_running(&mut self) {
        for _ in 0..5 {
            let id = self.push("hello").await.expect("an accepted job");
            self.accepted.push(id);
        }
        let first = self.accepted[0].clone();
        until("the first job completes", async || self.state(&first).await == "completed").await;
        // The model answers when the disk is full already: the answer is kept in memory.
        let slow = self.push("slow").await.expect("an accepted job");
        self.accepted.push(slow.clone());
        until("the model is asked", async || asked(&self.models, "slow") == 1).await;
        let pushes = self.fill().await;
        self.gate.open();
        assert_eq!(self.state(&first).await, "completed", "reads go on");
        // PostgreSQL may find room for the answer in pages that exist; its log is on another disk.
        if self.env.is_empty() {
            assert_ne!(self.state(&slow).await, "completed", "nothing is reported that is not stored");
        }
        self.free(pushes).await;
        assert_eq!(asked(&self.models, "slow"), 1, "the answer is not paid for again");
    }

    /// The disk is full at a restart: `restart` kills the processes and starts them again.
    async fn fill_and_restart(&mut self, mut restart: impl AsyncFnMut(&str)) {
        let first = self.accepted[0].clone();
        let pushes = self.fill().await;
        restart(&self.bind).await;
        assert_eq!(self.state(&first).await, "completed", "reads go on after a restart");
        self.free(pushes).await;
    }
}

/// How often the model was asked for this input.
fn asked(models: &ModelServer, input: &str) -> usize {
    models.calls().iter().filter(|call| call.request.to_string().contains(input)).count()
}

async fn send(http: Client, url: String, id: String, input: String) -> Option<u16> {
    let job = json!({"id": id, "type": "agent.ask", "args": [input], "ext_agent_model": "m"});
    let answer = http.post(format!("{url}/ojs/v1/jobs")).json(&job).send().await.ok()?;
    Some(answer.status().as_u16())
}

/// Returns a free address of this machine.
async fn free_address() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    listener.local_addr().expect("an address").to_string()
}

fn client() -> Client {
    turnstone_tests::fleet::install_crypto();
    turnstone_tests::http::client_builder().timeout(Duration::from_secs(60)).build().expect("a client")
}

async fn dev(folder: &Path, bind: &str) -> Program {
    let mut program = Program::start(folder, &["dev", "--bind", bind], &[]);
    program.first_line("turnstone listens on ").await;
    program
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_tmpfs, ignore = "needs the right to mount a tmpfs")]
async fn a_full_disk_loses_nothing_on_sqlite() {
    let (disk, gate, bind) = (SmallDisk::mount(ROOM), Gate::default(), free_address().await);
    let http = client();
    let models = Arc::new(ModelServer::start(model(&gate)).await);
    let scratch = turnstone_tests::scratch::folder();
    let folder = scratch.path().to_owned();
    let settings = format!(
        "[server]\ndata = '{}/data'\n[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n",
        disk.path().display(),
        models.url
    );
    std::fs::write(folder.join("turnstone.toml"), settings).expect("a file");
    let mut program = dev(&folder, &bind).await;
    let url = format!("http://{bind}");
    let mut scene = Scene {
        disk,
        models,
        gate,
        http,
        folder: folder.clone(),
        url,
        env: Vec::new(),
        bind,
        accepted: Vec::new(),
    };
    scene.fill_while_running().await;
    scene
        .fill_and_restart(async |bind: &str| {
            program.signal("KILL");
            program.ended().await;
            program = dev(&folder, bind).await;
        })
        .await;
    drop(program);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(any(no_tmpfs, no_postgres), ignore = "needs PostgreSQL, and the right to mount a tmpfs")]
async fn a_full_disk_loses_nothing_on_postgres() {
    let (disk, gate) = (SmallDisk::mount(ROOM), Gate::default());
    let http = client();
    let site = Site::answering(&[], model(&gate)).await;
    site.postgres.move_to(&site.database, disk.path()).await;
    let fleet = site.fleet().await;
    let url = fleet.api.url.clone();
    let bind = url.trim_start_matches("http://").to_owned();
    let mut scene = Scene {
        disk,
        models: Arc::clone(&site.models),
        gate,
        http,
        folder: site.path().to_owned(),
        url,
        env: vec![("DATABASE_URL", site.database.url.clone())],
        bind,
        accepted: Vec::new(),
    };
    // PostgreSQL accepts no new connection while it cannot write in the folder of the database: there is no restart.
    scene.fill_while_running().await;
    fleet.kill().await;
}
