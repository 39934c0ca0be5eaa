//! A fleet of processes on a database that a test may break.

use super::load::Load;
use crate::program::{Program, run};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use turnstone_tests::servers::{Database, Postgres};
use turnstone_tests::{ModelServer, Reply, fleet, wait};

/// A PostgreSQL server of its own with a migrated database, a model, and a folder with the configuration.
pub struct Site {
    folder: tempfile::TempDir,
    /// The database.
    pub database: Database,
    /// The server.
    pub postgres: Postgres,
    /// The model.
    pub models: Arc<ModelServer>,
}

impl Site {
    /// Starts a site whose server has these settings.
    pub async fn start(settings: &[(&str, &str)]) -> Self {
        Self::answering(settings, |_| Reply::text("done")).await
    }

    /// Starts a site whose server has these settings, with a model that follows a script.
    pub async fn answering(
        settings: &[(&str, &str)],
        script: impl Fn(&Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        fleet::install_crypto();
        let postgres = Postgres::own_with(settings).await;
        let database = postgres.database().await;
        let models = Arc::new(ModelServer::start(script).await);
        let folder = turnstone_tests::scratch::folder();
        let settings = format!(
            "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n",
            models.url
        );
        std::fs::write(folder.path().join("turnstone.toml"), settings).expect("a file");
        let migrated = run(folder.path(), &["migrate"], &[("DATABASE_URL", &database.url)]).await;
        assert_eq!(migrated.code, Some(0), "{migrated:?}");
        Self { folder, database, postgres, models }
    }

    /// The folder of the processes.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Starts an API process that reaches the database at this address.
    pub async fn api(&self, database: &str) -> Api {
        self.api_at(database, "127.0.0.1:0").await
    }

    async fn api_at(&self, database: &str, bind: &str) -> Api {
        let arguments = ["api", "--bind", bind];
        let mut program = Program::start(self.path(), &arguments, &[("DATABASE_URL", database)]);
        let url = program.first_line("turnstone listens on ").await;
        Api { program, url }
    }

    /// Starts a scheduler.
    pub async fn scheduler(&self) -> Program {
        let mut scheduler =
            Program::start(self.path(), &["scheduler"], &[("DATABASE_URL", &self.database.url)]);
        scheduler.first_line("turnstone scheduler ").await;
        scheduler
    }

    /// Starts a worker with a short lease and few slots, so that no worker claims all jobs.
    pub async fn worker(&self, name: &str, database: &str) -> Program {
        let arguments = ["worker", "--name", name, "--slots", "4", "--lease", "2s"];
        let mut worker = Program::start(self.path(), &arguments, &[("DATABASE_URL", database)]);
        worker.first_line(&format!("turnstone worker {name} runs ")).await;
        worker
    }

    /// Starts an API process, a scheduler and two workers.
    pub async fn fleet(&self) -> Fleet {
        self.fleet_of("127.0.0.1:0", ["near-1", "near-2"]).await
    }

    /// The same, with the API at this address and with workers of these names.
    pub async fn fleet_of(&self, bind: &str, names: [&str; 2]) -> Fleet {
        let url = &self.database.url;
        let (api, scheduler) = (self.api_at(url, bind).await, self.scheduler().await);
        let mut fleet = Fleet { api, scheduler, workers: Vec::new() };
        for name in names {
            fleet.workers.push(self.worker(name, url).await);
        }
        fleet
    }

    /// Returns a number from the database.
    pub async fn number(&self, sql: &str) -> i64 {
        let answer = self.postgres.psql(&self.database, sql).await;
        answer.parse().unwrap_or_else(|_| panic!("{sql}: {answer} is no number"))
    }

    /// Waits until a number in the database is as wanted.
    pub async fn until(&self, what: &str, sql: &str, wanted: impl Fn(i64) -> bool) -> i64 {
        wait::found(what, async || Some(self.number(sql).await).filter(|number| wanted(*number))).await
    }

    /// Returns the number of the newest job.
    pub async fn newest(&self) -> i64 {
        self.number("SELECT coalesce(max(seq), 0) FROM jobs").await
    }

    /// Waits for so many further completed jobs.
    pub async fn progress(&self, more: i64) {
        let completed = "SELECT count(*) FROM jobs WHERE state = 'completed'";
        let before = self.number(completed).await;
        self.until("jobs are completed", completed, |now| now >= before + more).await;
    }

    /// Waits until every worker of the fleet has started a job that was enqueued from now on.
    pub async fn all_at_work(&self, fleet: &Fleet) {
        let at_work = format!(
            "SELECT count(DISTINCT body::json->0->'event'->'data'->>'worker_id') FROM journal WHERE names LIKE 'job.started%' AND job_seq > {}",
            self.newest().await
        );
        let workers = i64::try_from(fleet.workers.len()).expect("a few");
        self.until("every worker takes new jobs", &at_work, |now| now >= workers).await;
    }

    /// Starts a steady load of agent jobs.
    pub fn load(&self, fleet: &Fleet) -> Load {
        Load::start(&fleet.api.url, &self.models)
    }
}

/// A running API process.
pub struct Api {
    pub program: Program,
    pub url: String,
}

/// The processes of a fleet.
pub struct Fleet {
    pub api: Api,
    pub scheduler: Program,
    pub workers: Vec<Program>,
}

impl Fleet {
    /// Sends a signal to every process.
    pub fn signal(&self, name: &str) {
        for program in self.workers.iter().chain([&self.scheduler, &self.api.program]) {
            program.signal(name);
        }
    }

    /// Kills every process, and waits until all have ended.
    pub async fn kill(mut self) {
        self.signal("KILL");
        for program in self.workers.iter_mut().chain([&mut self.scheduler, &mut self.api.program]) {
            program.ended().await;
        }
    }

    /// Stops every process; each must be the one that was started, and end with 0.
    pub async fn stop(self) {
        for mut program in self.workers.into_iter().chain([self.scheduler, self.api.program]) {
            assert!(program.runs(), "a process ended under the fault:\n{}", program.warned());
            program.stop().await;
        }
    }
}
