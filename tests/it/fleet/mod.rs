//! Worker processes around a fleet on PostgreSQL, in real time: what must hold when they die, are paused, or have a
//! wrong clock.

mod chaos;
mod clocks;
mod killed;
mod long_call;
mod paused;
mod steps;

use crate::program::{Env, Program};
use serde_json::{Value, json};
use std::fmt::Write as _;
use tokio_util::task::AbortOnDropHandle;
use turnstone_tests::{Fleet, Reply, worker};

/// A fleet without workers of its own, and the configuration of those that join it.
pub(crate) struct Site {
    pub(crate) fleet: Fleet,
    folder: tempfile::TempDir,
}

/// A folder with the configuration of programs that join a fleet.
fn configured(fleet: &Fleet) -> tempfile::TempDir {
    let folder = turnstone_tests::scratch::folder();
    let mut settings = format!(
        "[providers.test]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n",
        fleet.models.url
    );
    for (name, idempotent) in worker::TOOLS {
        let url = format!("{}/{name}", fleet.tools.url);
        let _ = write!(
            settings,
            "[tools.{name}]\ndescription = 'a tool'\nmethod = 'POST'\nurl = '{url}'\nidempotent = {idempotent}\n\
             allow_private = true\n"
        );
    }
    std::fs::write(folder.path().join("turnstone.toml"), settings).expect("a file");
    folder
}

impl Site {
    pub(crate) async fn start(script: impl Fn(&Value) -> Reply + Send + Sync + 'static) -> Self {
        let fleet = Fleet::builder().postgres().in_real_time().workers(0).model(script).start().await;
        let folder = configured(&fleet);
        Self { fleet, folder }
    }

    /// Starts a scheduler in this process, which stops when it is dropped.
    fn keep_time(&self) -> AbortOnDropHandle<()> {
        self.fleet.keep_time()
    }

    fn program(&self, arguments: &[&str], env: Env<'_>) -> Program {
        let place = self.fleet.place.to_string();
        Program::start(self.folder.path(), arguments, &[&[("DATABASE_URL", place.as_str())], env].concat())
    }

    /// Starts a worker of the real program.
    pub(crate) async fn worker(&self, name: &str, arguments: &[&str], env: Env<'_>) -> Program {
        let mut worker = self.program(&[&["worker", "--name", name], arguments].concat(), env);
        worker.first_line(&format!("turnstone worker {name} runs ")).await;
        worker
    }

    /// Enqueues an agent job that may use the tools.
    pub(crate) async fn push(&self, input: &str) -> String {
        let tools = [json!({"name": "search"}), json!({"name": "book"})];
        let job = json!({"type": "agent.fleet", "args": [input], "ext_agent_model": "m", "ext_agent_tools": tools,
                         "ext_agent_token_budget": 50_000});
        self.fleet.push(&job).await
    }

    /// Returns the active jobs of a worker.
    async fn jobs_of(&self, worker: &str) -> Vec<String> {
        let sql =
            format!("SELECT id FROM jobs WHERE state = 'active' AND worker_id = '{worker}' ORDER BY seq");
        self.fleet.place.rows::<(String,)>(&sql).await.into_iter().map(|(id,)| id).collect()
    }

    /// Returns the worker that claimed a job last.
    async fn last_worker(&self, job: &str) -> String {
        let sql = format!(
            "SELECT v.body FROM journal v JOIN jobs j ON j.seq = v.job_seq WHERE j.id = '{job}' AND v.names LIKE 'job.started%' \
             ORDER BY v.last_event DESC LIMIT 1"
        );
        let started: Vec<(String,)> = self.fleet.place.rows(&sql).await;
        let body: Value = serde_json::from_str(&started[0].0).expect("JSON");
        body[0]["event"]["data"]["worker_id"].as_str().expect("a name").to_owned()
    }

    /// Returns the number of rows that writes for a job change.
    async fn written(&self) -> i64 {
        let tables = ["journal", "tool_calls", "job_results", "job_errors", "reviews"];
        let counts: Vec<String> =
            tables.iter().map(|table| format!("(SELECT count(*) FROM {table})")).collect();
        self.fleet.number(&format!("SELECT {}", counts.join(" + "))).await
    }
}
