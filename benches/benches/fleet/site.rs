//! A fleet of processes on a PostgreSQL of its own, and jobs for it.

use crate::rates::Rates;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use turnstone_benches::jobs::several;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{Clock as _, JobId, SystemClock};
use turnstone_store::{JobKind, PostgresOptions, PostgresStore, Store};
use turnstone_tests::binaries;
use turnstone_tests::servers::{Database, Postgres};
use turnstone_tests::witness::Witness;

/// Jobs that are enqueued together.
const TOGETHER: usize = 500;
/// How long a process may take to start.
const PATIENCE: Duration = Duration::from_secs(60);

/// A migrated database on a server of its own, and a folder for the configuration of processes.
pub struct Site {
    folder: tempfile::TempDir,
    /// The database.
    pub database: Database,
    /// The server.
    pub postgres: Postgres,
    /// The store, for enqueuing.
    pub store: Store,
}

impl Site {
    /// A site whose server has these settings beside its defaults.
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        let postgres = Postgres::own_with(settings).await;
        let database = postgres.database().await;
        let options = PostgresOptions::new(&database.url);
        PostgresStore::migrate(&options, &[]).await.expect("migrations");
        let (store, _) = PostgresStore::open(&options, Arc::new(SystemIds)).await.expect("the store");
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, database, postgres, store }
    }

    /// An outside witness.
    pub fn witness(&self) -> Witness<'_> {
        Witness { postgres: &self.postgres, database: &self.database }
    }

    /// A worker with a model that answers after a while.
    pub async fn worker(&self, name: &str, slots: usize, model: Duration, lease: &str) -> Process {
        self.worker_at(self.postgres.addr(), name, slots, model, lease).await
    }

    /// The same with another way to the database.
    pub async fn worker_at(
        &self,
        database: SocketAddr,
        name: &str,
        slots: usize,
        model: Duration,
        lease: &str,
    ) -> Process {
        let folder = self.folder(name);
        let settings = "[providers.bench]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_model = 'm'\ntimeout_ms = 600_000\n";
        let answer = format!(
            "rules:\n  - answer: {{text: done, usage: {{input: 10, output: 1}}, delay_ms: {}}}\n",
            model.as_millis()
        );
        std::fs::write(folder.join("turnstone.toml"), settings).expect("a file");
        std::fs::write(folder.join("script.yaml"), answer).expect("a file");
        let slots = slots.to_string();
        let arguments = ["worker", "--name", name, "--slots", &slots, "--lease", lease];
        Process::start(&folder, &arguments, Some(&self.database.url_at(database))).await
    }

    /// A folder for a process.
    pub fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    /// A scheduler.
    pub async fn scheduler(&self) -> Process {
        Process::start(self.folder.path(), &["scheduler"], Some(&self.database.url)).await
    }

    /// Enqueues agent jobs of one turn.
    pub async fn push(&self, count: usize) -> Vec<JobId> {
        let mut ids = Vec::with_capacity(count);
        while ids.len() < count {
            let some = several(JobKind::Agent, TOGETHER.min(count - ids.len()));
            let pushed = self.store.intake.push(some).await.expect("the store takes jobs");
            ids.extend(pushed.into_iter().map(|pushed| pushed.id));
        }
        ids
    }

    /// Makes sure that so many jobs wait.
    pub async fn stock(&self, jobs: f64) {
        let waiting = usize::try_from(self.witness().available().await).unwrap_or_default();
        self.push((jobs.ceil() as usize).saturating_sub(waiting)).await;
    }

    /// Prints a warning when the work ran out: then a rate does not describe the fleet.
    pub async fn had_work(&self) {
        if self.witness().available().await == 0 {
            eprintln!("the work ran out while the fleet was watched: the next figure says nothing");
        }
    }

    /// Returns the rates of the jobs that ended since a time.
    pub async fn rates(&self, since: i64) -> Rates {
        Rates::of(self.witness().ended(since).await)
    }

    /// The rate of the fleet while it has all it can do, watched for so long; more is enqueued than it can do.
    pub async fn clean(&self, watched: Duration) -> f64 {
        // How fast it is shows while it starts; enough is enqueued then for it not to run dry.
        let guess = Duration::from_secs(2).min(watched);
        let mut stock = 600.0;
        let began = now();
        loop {
            self.stock(stock).await;
            let from = now();
            tokio::time::sleep(guess).await;
            let left = self.witness().available().await;
            let rate = self.rates(began).await.usual(from, now());
            let wanted = rate * 1.5 * watched.as_secs_f64() + 200.0;
            if left > 0 && wanted <= stock {
                break;
            }
            // Looking takes time as well, in which the fleet works: without work left, the rate says too little.
            stock = if left > 0 { wanted } else { wanted.max(stock * 2.0) };
        }
        self.stock(stock).await;
        let from = now();
        tokio::time::sleep(watched).await;
        self.rates(from).await.usual(from, now())
    }
}

/// The time, in milliseconds of the epoch: that of the database too, which is on the same machine.
pub fn now() -> i64 {
    SystemClock.now().0
}

/// A process of the program. It is killed when it is dropped.
pub struct Process {
    child: Child,
    /// The first line that it said.
    pub said: String,
}

impl Process {
    /// Starts it and waits until it says that it runs.
    pub async fn start(folder: &Path, arguments: &[&str], database: Option<&str>) -> Self {
        let program = tokio::task::spawn_blocking(binaries::turnstone).await.expect("the program builds");
        let mut command = Command::new(program);
        command.env_remove("DATABASE_URL").envs(database.map(|url| ("DATABASE_URL", url)));
        for (name, _) in std::env::vars_os() {
            if ["TURNSTONE_", "CARGO", "REDIS_"].iter().any(|own| name.to_string_lossy().starts_with(own)) {
                command.env_remove(name);
            }
        }
        let log = std::fs::File::options().append(true).create(true).open(folder.join("log"));
        let mut child = command
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.expect("a file"))
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let Ok(Ok(Some(said))) = tokio::time::timeout(PATIENCE, lines.next_line()).await else {
            panic!("it does not run:\n{}", std::fs::read_to_string(folder.join("log")).unwrap_or_default());
        };
        // Whatever else it says is of no interest, but it has to be able to say it.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Self { child, said }
    }

    /// SIGKILL; returns when the process is gone.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("SIGKILL");
    }

    /// Sends it a signal by its name.
    pub fn signal(&self, name: &str) {
        let Some(pid) = self.pid() else { return };
        let sent = std::process::Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
        assert!(sent.expect("kill runs").success(), "the process is gone");
    }

    /// Its number.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    fn proc(&self, file: &str) -> String {
        let pid = self.pid().unwrap_or_default();
        std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default()
    }

    /// A number that the system counts for it, such as `write_bytes`; 0 where it does not tell.
    pub fn io(&self, name: &str) -> f64 {
        number_after(&self.proc("io"), name)
    }

    /// Its resident memory, in kilobytes.
    pub fn resident_kb(&self) -> f64 {
        number_after(&self.proc("status"), "VmRSS")
    }

    /// Processor time that it has taken so far, in seconds.
    pub fn processor_s(&self) -> f64 {
        let stat = self.proc("stat");
        let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
        let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
        ticks as f64 / 100.0
    }
}

/// The number in a line of `name: number`.
fn number_after(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|rest| rest.split_ascii_whitespace().next()?.parse().ok());
    number.unwrap_or_default()
}
