//! The `turnstone` program as a real process with its own folder and environment, ended by real signals.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command as Plain, Stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::watch;
use turnstone_tests::processes::{self, Process};
use turnstone_tests::{binaries, fleet, wait};

pub use turnstone_tests::wait::PATIENCE;

/// Removes the tests' own environment, and any proxy, from the program's.
pub fn without_environment(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        let name_text = name.to_string_lossy();
        if ["TURNSTONE_", "CARGO", "OTEL_"].iter().any(|own| name_text.starts_with(own)) {
            command.env_remove(&name);
        }
    }
    command
        .env("http_proxy", "http://127.0.0.1:9")
        .env_remove("no_proxy")
        .env_remove("NO_PROXY")
        .env_remove("DATABASE_URL")
        .env_remove("REDIS_URL")
        .env("USER", "tester")
}

/// The variables of a program.
pub type Env<'a> = &'a [(&'a str, &'a str)];

/// A running program. It is killed when it is dropped.
pub struct Program {
    process: Process,
    stdout: watch::Receiver<String>,
    stderr: watch::Receiver<String>,
    folder: PathBuf,
}

impl Program {
    /// Starts it in this folder.
    pub fn start(folder: &Path, arguments: &[&str], env: Env<'_>) -> Self {
        fleet::install_crypto();
        let mut command = Command::new(binaries::turnstone());
        let command = without_environment(&mut command)
            .args(arguments)
            .envs(env.iter().copied())
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = processes::start(command);
        let stdout = collected(process.stdout.take().expect("a pipe"));
        let stderr = collected(process.stderr.take().expect("a pipe"));
        Self { process, stdout, stderr, folder: folder.to_owned() }
    }

    /// Returns its working folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.process.id().expect("a running process")
    }

    /// Returns a figure of `/proc/PID/status`, such as `VmHWM`, in bytes; `None` on a system without `/proc`.
    pub fn memory(&self, figure: &str) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(figure)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
    }

    /// Waits until standard output holds these words, and returns all of it.
    pub async fn says(&mut self, words: &str) -> String {
        heard(&mut self.stdout, &self.stderr, words).await
    }

    /// Like [`Program::says`], for standard error.
    pub async fn warns(&mut self, words: &str) -> String {
        heard(&mut self.stderr, &self.stdout, words).await
    }

    /// Returns all of standard error so far.
    pub fn warned(&self) -> String {
        self.stderr.borrow().clone()
    }

    /// Waits for its first line, which must begin with these words, and returns the rest of it.
    pub async fn first_line(&mut self, words: &str) -> String {
        let said = self.says("\n").await;
        let rest = said.lines().next().and_then(|line| line.strip_prefix(words));
        rest.unwrap_or_else(|| panic!("the first line does not begin with {words:?}: {said}")).to_owned()
    }

    /// Returns true while it runs.
    pub fn runs(&mut self) -> bool {
        self.process.try_wait().expect("a status").is_none()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let sent = Plain::new("sh").arg("-c").arg(format!("kill -{name} {}", self.pid())).status();
        assert!(sent.expect("a shell").success());
    }

    /// Waits for its end and returns the exit code, or `None` when a signal ended it.
    pub async fn ended(&mut self) -> Option<i32> {
        wait::output("the program ends", self.process.wait()).await.expect("a status").code()
    }

    /// Sends SIGTERM once, and waits until it has drained.
    pub async fn stop(mut self) {
        self.signal("TERM");
        assert_eq!(self.ended().await, Some(0), "{}", self.warned());
    }
}

/// The result of a command.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Standard output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Standard output as one JSON value per line.
    pub fn lines(&self) -> Vec<Value> {
        let parsed = self.stdout.lines().map(serde_json::from_str);
        parsed.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs a command to its end; nothing is at its prompt.
pub async fn run(folder: &Path, arguments: &[&str], env: Env<'_>) -> Ran {
    run_with_input(folder, arguments, env, "").await
}

/// Runs a command to its end, with a text at its prompt.
pub async fn run_with_input(folder: &Path, arguments: &[&str], env: Env<'_>, input: &str) -> Ran {
    ended(&mut Command::new(binaries::turnstone()), folder, arguments, env, input).await
}

async fn ended(command: &mut Command, folder: &Path, arguments: &[&str], env: Env<'_>, input: &str) -> Ran {
    let command = without_environment(command)
        .args(arguments)
        .envs(env.iter().copied())
        .current_dir(folder)
        .stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut process = command.kill_on_drop(true).spawn().expect("it starts");
    if let Some(mut prompt) = process.stdin.take() {
        prompt.write_all(input.as_bytes()).await.expect("it reads");
    }
    let running = process.wait_with_output();
    let output = wait::output(&format!("{arguments:?} ends"), running).await.expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Runs its arguments on a terminal of 200 columns, and copies what that terminal receives to standard output.
const TERMINAL: &str = "
import fcntl, os, pty, struct, sys, termios
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 50, 200, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    try:
        received = os.read(terminal, 65536)
    except OSError:
        break
    if not received:
        break
    sys.stdout.buffer.write(received)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

/// Runs a command to its end on a terminal. `stdout` is all that the terminal receives, of standard error as well.
pub async fn in_terminal(folder: &Path, arguments: &[&str], env: Env<'_>) -> Ran {
    let mut command = Command::new("python3");
    command.args(["-c", TERMINAL]).arg(binaries::turnstone());
    ended(&mut command, folder, arguments, env, "").await
}

/// Collects all output of a pipe so far.
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
    let is_heard = wait::ends(PATIENCE, waiting).await.is_some_and(|all| all.is_ok());
    let all = pipe.borrow().clone();
    assert!(is_heard, "{words:?} was not said:\n{all}\nelsewhere:\n{}", *other.borrow());
    all
}
