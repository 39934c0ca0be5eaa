//! `turnstone dev` and the commands, as a user has them: the real program, over real HTTP, killed by real signals.

mod commands;
mod demo_job;
mod stopping;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command as Plain, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use turnstone_tests::{binaries, fleet};

/// Longer than this nothing may take here.
const PATIENCE: Duration = Duration::from_secs(60);

/// The tests' own environment must not change what the program does; and neither may a proxy that is not there.
fn without_environment(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if name_text.starts_with("TURNSTONE_") || name_text.starts_with("CARGO") {
            command.env_remove(&name);
        }
    }
    command
        .env("http_proxy", "http://127.0.0.1:9")
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .env("USER", "tester")
}

/// A running `turnstone dev`.
struct Dev {
    process: Child,
    /// Where it says that it listens.
    url: String,
    stdout: watch::Receiver<String>,
    stderr: watch::Receiver<String>,
    folder: PathBuf,
    http: reqwest::Client,
}

impl Dev {
    /// Starts it in `folder`, with its data in `folder/data`, on a free port.
    async fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut process = Self::spawn(folder, arguments);
        let stdout = collected(process.stdout.take().expect("a pipe"));
        let stderr = collected(process.stderr.take().expect("a pipe"));
        let http = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut dev = Self { process, url: String::new(), stdout, stderr, folder: folder.to_owned(), http };
        let first = dev.says("\n").await;
        let url = first.lines().next().and_then(|line| line.strip_prefix("turnstone listens on "));
        dev.url = url.unwrap_or_else(|| panic!("no address in the first line: {first}")).to_owned();
        dev
    }

    fn spawn(folder: &Path, arguments: &[&str]) -> Child {
        fleet::install_crypto();
        let mut command = Command::new(binaries::turnstone());
        without_environment(&mut command)
            .args(["dev", "--data", "data", "--bind", "127.0.0.1:0"])
            .args(arguments)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts")
    }

    /// Waits until standard output holds these words, and returns all of it.
    async fn says(&mut self, words: &str) -> String {
        heard(&mut self.stdout, &self.stderr, words).await
    }

    /// As [`Dev::says`], of standard error.
    async fn warns(&mut self, words: &str) -> String {
        let both = self.stdout.clone();
        heard(&mut self.stderr, &both, words).await
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.http.get(format!("{}{path}", self.url)).send().await.expect("an answer");
        assert!(answer.status().is_success(), "GET {path}: {}", answer.status());
        answer.json().await.expect("JSON")
    }

    /// The events of a job up to and including the first of which `last` is true.
    async fn events(&self, job: &str, last: impl Fn(&str, &Value) -> bool) -> Vec<Value> {
        let url = format!("{}/ojs/v1/jobs/{job}/events", self.url);
        let is_last = |event: &eventsource_stream::Event| {
            last(&event.event, &serde_json::from_str(&event.data).expect("JSON"))
        };
        let reading = turnstone_tests::sse::read(&url, None, |seen| seen.last().is_some_and(&is_last));
        let events = tokio::time::timeout(PATIENCE, reading).await.expect("the event comes");
        events.iter().map(|event| serde_json::from_str(&event.data).expect("JSON")).collect()
    }

    /// Sends a signal by its name.
    fn signal(&self, name: &str) {
        let id = self.process.id().expect("a running process");
        let sent = Plain::new("sh").arg("-c").arg(format!("kill -{name} {id}")).status().expect("a shell");
        assert!(sent.success());
    }

    /// Waits for its end and returns the exit code; `None` when a signal ended it.
    async fn ended(&mut self) -> Option<i32> {
        tokio::time::timeout(PATIENCE, self.process.wait()).await.expect("it ends").expect("a status").code()
    }

    /// Runs a command against this server.
    async fn run(&self, arguments: &[&str]) -> Ran {
        run_in(&self.folder, &[arguments, &["--url", &self.url]].concat()).await
    }

    /// The database file.
    fn database(&self) -> PathBuf {
        self.folder.join("data/turnstone.db")
    }
}

/// What a command did.
#[derive(Debug)]
struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    /// Standard output as JSON.
    fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Standard output as one JSON value per line.
    fn lines(&self) -> Vec<Value> {
        let parsed = self.stdout.lines().map(serde_json::from_str);
        parsed.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a command to its end.
async fn run_in(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(binaries::turnstone());
    let command = without_environment(&mut command).args(arguments).current_dir(folder).stdin(Stdio::null());
    let running = command.kill_on_drop(true).output();
    let output = tokio::time::timeout(PATIENCE, running).await.expect("it ends").expect("it starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Everything that a pipe has brought so far.
fn collected(pipe: impl AsyncRead + Unpin + Send + 'static) -> watch::Receiver<String> {
    let (sender, receiver) = watch::channel(String::new());
    tokio::spawn(async move {
        let mut lines = BufReader::new(pipe).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            sender.send_modify(|all| *all += &(line + "\n"));
        }
    });
    receiver
}

async fn heard(pipe: &mut watch::Receiver<String>, other: &watch::Receiver<String>, words: &str) -> String {
    let waiting = pipe.wait_for(|all| all.contains(words));
    let is_heard = tokio::time::timeout(PATIENCE, waiting).await.is_ok_and(|all| all.is_ok());
    let all = pipe.borrow().clone();
    assert!(is_heard, "{words:?} was not said:\n{all}\nelsewhere:\n{}", *other.borrow());
    all
}
