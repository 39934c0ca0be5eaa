//! A fleet as an operator runs it: the real program as separate processes on a real PostgreSQL.

mod draining;
mod keys;
mod leaders;
mod probes;
mod refusals;
mod restoring;
mod reviews;
mod services;
mod standbys;

use crate::program::{Program, Ran, run};
use serde_json::Value;
use std::path::Path;
use turnstone_tests::servers::{Database, Postgres};
use turnstone_tests::{ModelServer, Reply, fleet, wait};

/// Enqueues an agent job.
const JOB: [&str; 8] =
    ["job", "push", "--type", "agent.ask", "--args", "[\"hi\"]", "--set", "ext_agent_model=m"];

/// A database, a model, and a folder with the configuration of the processes.
struct Site {
    folder: tempfile::TempDir,
    database: Database,
    models: ModelServer,
}

impl Site {
    /// A site with an empty database.
    async fn bare(script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        Self::over(Postgres::shared().await.database().await, script).await
    }

    /// A site with this database.
    async fn over(database: Database, script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        fleet::install_crypto();
        let models = ModelServer::start(script).await;
        let folder = turnstone_tests::scratch::folder();
        let settings = format!(
            "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n",
            models.url
        );
        std::fs::write(folder.path().join("turnstone.toml"), settings).expect("a file");
        Self { folder, database, models }
    }

    /// A site with a migrated database.
    async fn migrated(script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let site = Self::bare(script).await;
        let migrated = site.run(&["migrate"]).await;
        assert_eq!(migrated.code, Some(0), "{migrated:?}");
        site
    }

    /// Waits for the first model call.
    async fn asked(&self) {
        self.models.seen(1).await;
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Runs a command to its end.
    async fn run(&self, arguments: &[&str]) -> Ran {
        run(self.path(), arguments, &[("DATABASE_URL", &self.database.url)]).await
    }

    fn start(&self, arguments: &[&str]) -> Program {
        Program::start(self.path(), arguments, &[("DATABASE_URL", &self.database.url)])
    }

    async fn scheduler(&self) -> Program {
        let mut scheduler = self.start(&["scheduler"]);
        scheduler.first_line("turnstone scheduler ").await;
        scheduler
    }

    async fn worker(&self, name: &str, arguments: &[&str]) -> Program {
        let mut worker = self.start(&[&["worker", "--name", name], arguments].concat());
        worker.first_line(&format!("turnstone worker {name} runs ")).await;
        worker
    }

    async fn api(&self) -> Api<'_> {
        let mut program = self.start(&["api", "--bind", "127.0.0.1:0"]);
        let url = program.first_line("turnstone listens on ").await;
        Api { site: self, program, url }
    }
}

/// A running API process and its clients.
struct Api<'a> {
    site: &'a Site,
    program: Program,
    url: String,
}

impl Api<'_> {
    /// Runs a command against this api.
    async fn run(&self, arguments: &[&str]) -> Ran {
        run(self.site.path(), &[arguments, &["--url", &self.url]].concat(), &[]).await
    }

    /// Enqueues an agent job and returns its id.
    async fn push(&self) -> String {
        let pushed = self.run(&[&JOB[..], &["-o", "ids"]].concat()).await;
        assert_eq!(pushed.code, Some(0), "{pushed:?}");
        pushed.stdout.trim().to_owned()
    }

    async fn job(&self, id: &str) -> Value {
        self.run(&["job", "get", id, "-o", "json"]).await.json()
    }

    async fn workers(&self) -> Vec<Value> {
        let listed = self.run(&["worker", "list", "-o", "json"]).await;
        assert_eq!(listed.code, Some(0), "{listed:?}");
        listed.json().as_array().expect("a list").clone()
    }

    /// Waits for the first event of a job for which `wanted` is true.
    async fn event(&self, job: &str, wanted: impl Fn(&str, &Value) -> bool) {
        let url = format!("{}/ojs/v1/jobs/{job}/events", self.url);
        let is_wanted = |event: &eventsource_stream::Event| {
            wanted(&event.event, &serde_json::from_str(&event.data).expect("JSON"))
        };
        let reading = turnstone_tests::sse::read(&url, None, |seen| seen.last().is_some_and(&is_wanted));
        let seen = wait::output("an event of a job", reading).await;
        let names: Vec<&str> = seen.iter().map(|event| event.event.as_str()).collect();
        assert!(seen.last().is_some_and(&is_wanted), "the stream ended without it: {names:?}");
    }
}
