//! A place for what is measured on either database: `turnstone dev` on a file, or a worker and a scheduler on PostgreSQL.

use crate::site::{Process, Site};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use turnstone_domain::ids::SystemIds;
use turnstone_domain::{JobId, NewJob};
use turnstone_store::{SqliteStore, Store};
use turnstone_tests::{Place, binaries};

/// Longer than anything here may take.
pub const PATIENCE: Duration = Duration::from_secs(900);
/// How often it is looked whether something has happened; seldom, so that looking is no part of what is measured.
const LOOK: Duration = Duration::from_millis(100);
/// Jobs that are enqueued together.
const TOGETHER: usize = 500;

/// Where it runs.
pub enum Stage {
    /// A file in the current directory, which is on the disk that matters.
    File { folder: TempDir, store: Box<Store> },
    /// A database of its own, and its scheduler.
    Fleet { site: Box<Site>, _scheduler: Process },
}

impl Stage {
    /// Both, one after another: the first is gone when the second begins.
    pub const EACH: [bool; 2] = [false, true];

    /// A new one.
    pub async fn start(postgres: bool) -> Self {
        if postgres {
            let site = Box::new(Site::start(&[]).await);
            let scheduler = site.scheduler().await;
            return Self::Fleet { site, _scheduler: scheduler };
        }
        let folder = tempfile::Builder::new().prefix(".turnstone-bench-").tempdir_in(".").expect("a folder");
        // Others may not read a data directory.
        std::fs::DirBuilder::new().mode(0o700).create(folder.path().join("data")).expect("a folder");
        let store = SqliteStore::open(&folder.path().join("data/turnstone.db"), Arc::new(SystemIds)).await;
        Self::File { folder, store: Box::new(store.expect("the store")) }
    }

    /// The database's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::File { .. } => "SQLite",
            Self::Fleet { .. } => "PostgreSQL",
        }
    }

    fn store(&self) -> &Store {
        match self {
            Self::File { store, .. } => store,
            Self::Fleet { site, .. } => &site.store,
        }
    }

    fn file(folder: &TempDir) -> PathBuf {
        folder.path().join("data/turnstone.db")
    }

    /// The database, for looking from outside.
    pub fn place(&self) -> Place {
        match self {
            Self::File { folder, .. } => Self::file(folder).into(),
            Self::Fleet { site, .. } => (&site.database).into(),
        }
    }

    /// Starts what runs turns, with this configuration and this script.
    pub async fn worker(
        &self,
        name: &str,
        slots: usize,
        lease: &str,
        settings: &str,
        script: &str,
    ) -> Process {
        let slots = slots.to_string();
        match self {
            Self::File { folder, .. } => {
                std::fs::write(folder.path().join("turnstone.toml"), settings).expect("a file");
                std::fs::write(folder.path().join("script.yaml"), script).expect("a file");
                let arguments = ["dev", "--data", "data", "--bind", "127.0.0.1:0", "--slots", &slots];
                Process::start(folder.path(), &arguments, None).await
            }
            Self::Fleet { site, .. } => {
                let folder = site.folder(name);
                std::fs::write(folder.join("turnstone.toml"), settings).expect("a file");
                std::fs::write(folder.join("script.yaml"), script).expect("a file");
                let arguments = ["worker", "--name", name, "--slots", &slots, "--lease", lease];
                Process::start(&folder, &arguments, Some(&site.database.url)).await
            }
        }
    }

    /// Enqueues jobs behind the back of `turnstone dev`, which finds them when it looks.
    pub async fn push(&self, mut jobs: Vec<NewJob>) -> Vec<JobId> {
        let mut ids = Vec::with_capacity(jobs.len());
        while !jobs.is_empty() {
            let some = jobs.drain(..TOGETHER.min(jobs.len())).collect();
            let pushed = self.store().intake.push(some).await.expect("the store takes jobs");
            ids.extend(pushed.into_iter().map(|pushed| pushed.id));
        }
        ids
    }

    /// Enqueues one job in the way of a client, so that the bell rings.
    pub async fn ask(&self, worker: &Process, job: NewJob, says: &str) -> JobId {
        if matches!(self, Self::Fleet { .. }) {
            return self.push(vec![job]).await.remove(0);
        }
        let url = worker.said.rsplit(' ').next().unwrap_or_default();
        let program = tokio::task::spawn_blocking(binaries::turnstone).await.expect("the program builds");
        let ran = tokio::process::Command::new(program)
            .args(["-o", "ids", "job", "push", "--url", url, "--type", "bench.agent"])
            .args(["--args", &format!("[{says:?}]"), "--set", "ext_agent_model=m"])
            .output()
            .await
            .expect("the program runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        JobId(String::from_utf8_lossy(&ran.stdout).trim().into())
    }

    /// Waits until a number is at least this.
    pub async fn at_least(&self, sql: &str, least: i64) {
        let (place, since) = (self.place(), Instant::now());
        while place.number(sql).await < least {
            assert!(since.elapsed() < PATIENCE, "{least} is not reached: {sql}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Size of the database, in bytes.
    pub async fn size(&self) -> f64 {
        let sql = match self {
            Self::File { .. } => "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
            Self::Fleet { .. } => "SELECT pg_database_size(current_database())",
        };
        self.place().number(sql).await as f64
    }

    /// Bytes that were written so far: all of the process that has the file, or the write-ahead log of the server.
    pub async fn written(&self, worker: &Process) -> f64 {
        match self {
            Self::File { .. } => worker.io("write_bytes"),
            Self::Fleet { .. } => {
                self.place().number("SELECT CAST(pg_current_wal_lsn() - '0/0' AS BIGINT)").await as f64
            }
        }
    }

    /// Rows that were read and written so far, where the database counts them.
    pub async fn rows(&self) -> Option<(f64, f64)> {
        let Self::Fleet { .. } = self else { return None };
        let of = |what: &str| {
            format!("SELECT CAST({what} AS BIGINT) FROM pg_stat_database WHERE datname = current_database()")
        };
        let read = self.place().number(&of("tup_fetched")).await as f64;
        Some((read, self.place().number(&of("tup_inserted + tup_updated + tup_deleted")).await as f64))
    }
}
