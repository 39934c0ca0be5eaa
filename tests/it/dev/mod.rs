//! `turnstone dev` and the commands: the real program, over real HTTP, with real signals.

mod agents;
mod asking;
mod batches;
mod commands;
mod copied;
mod delegates;
mod demo_job;
mod hostile;
mod mcp_names;
mod misconfigured;
mod open_files;
mod operating;
mod programs;
mod prompt;
mod reachable;
mod renewing;
mod reset;
mod spending;
mod stopping;
mod waiting;

use crate::program::{Program, Ran, run, without_environment};
use serde_json::Value;
use std::path::Path;
use turnstone_tests::{Place, fleet, wait};

/// A running `turnstone dev`.
struct Dev {
    program: Program,
    /// The address that it prints.
    url: String,
    http: reqwest::Client,
}

impl Dev {
    /// Starts it in `folder`, with its data in `folder/data`, on a free port.
    async fn start(folder: &Path, arguments: &[&str]) -> Self {
        fleet::install_crypto();
        let dev = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
        let mut program = Program::start(folder, &[&dev, arguments].concat(), &[]);
        let url = program.first_line("turnstone listens on ").await;
        let http = turnstone_tests::http::client();
        Self { program, url, http }
    }

    /// Waits until standard output holds these words, and returns all of it.
    async fn says(&mut self, words: &str) -> String {
        self.program.says(words).await
    }

    /// Like [`Dev::says`], for standard error.
    async fn warns(&mut self, words: &str) -> String {
        self.program.warns(words).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.http.get(format!("{}{path}", self.url)).send().await.expect("an answer");
        assert!(answer.status().is_success(), "GET {path}: {}", answer.status());
        answer.json().await.expect("JSON")
    }

    /// Returns the events of a job up to and including the first for which `last` returns true.
    async fn events(&self, job: &str, last: impl Fn(&str, &Value) -> bool) -> Vec<Value> {
        let url = format!("{}/ojs/v1/jobs/{job}/events", self.url);
        let is_last = |event: &eventsource_stream::Event| {
            last(&event.event, &serde_json::from_str(&event.data).expect("JSON"))
        };
        let reading = turnstone_tests::sse::read(&url, None, |seen| seen.last().is_some_and(&is_last));
        let events = wait::output("an event of the job", reading).await;
        events.iter().map(|event| serde_json::from_str(&event.data).expect("JSON")).collect()
    }

    /// Sends a signal by its name.
    fn signal(&self, name: &str) {
        self.program.signal(name);
    }

    /// Waits for its end and returns the exit code, or `None` when a signal ended it.
    async fn ended(&mut self) -> Option<i32> {
        self.program.ended().await
    }

    /// Runs a command against this server.
    async fn run(&self, arguments: &[&str]) -> Ran {
        run_in(self.program.folder(), &[arguments, &["--url", &self.url]].concat()).await
    }

    /// The database file.
    fn database(&self) -> Place {
        self.program.folder().join("data/turnstone.db").into()
    }
}

/// Runs a command to its end.
async fn run_in(folder: &Path, arguments: &[&str]) -> Ran {
    run(folder, arguments, &[]).await
}
