//! One server process and the shell that supervises it.

use super::beside;
use super::port::Port;
use super::programs::{give_to_server_user, server_user};
use crate::scratch;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The longest until a server answers; recovery after a crash is part of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a private folder for a server's files.
pub(super) fn private_folder(name: &str) -> PathBuf {
    let prefix = format!("turnstone-{name}-");
    let folder =
        tempfile::Builder::new().prefix(&prefix).tempdir_in(scratch::base()).expect("a private folder");
    // The shell removes it, because it outlives a test that is killed.
    folder.keep()
}

/// The recipe of a server.
pub(super) struct Recipe {
    /// Its name in messages.
    pub(super) name: &'static str,
    /// Program and arguments. [`Supervised::start`] adds those that differ between two starts.
    pub(super) command: Vec<OsString>,
    /// Returns the last argument for the server's private folder. The file `log` in it is the server's
    /// output.
    pub(super) place: fn(&Path) -> OsString,
    /// The signal that ends it with the test.
    pub(super) last_signal: &'static str,
    /// True if it refuses to run as root.
    pub(super) never_as_root: bool,
}

/// The server. It ends, and its folder is removed, when this is dropped or the test process dies.
pub(super) struct Supervised {
    name: &'static str,
    folder: PathBuf,
    shell: Mutex<Shell>,
}

struct Shell {
    process: Child,
    words: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Supervised {
    /// Prepares the server; it does not run yet.
    pub(super) fn prepare(recipe: Recipe) -> Arc<Self> {
        let Recipe { name, command, place, last_signal, never_as_root } = recipe;
        let folder = private_folder(&name.to_lowercase());
        let user = server_user().filter(|_| never_as_root);
        if user.is_some() {
            give_to_server_user(&folder);
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/servers/supervise.sh");
        let mut process = Command::new("sh")
            .arg(script)
            .arg(&folder)
            .args([last_signal, user.unwrap_or("-")])
            .args(command)
            .arg(place(&folder))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the test; the shell cleans up when the test is gone.
            .process_group(0)
            .spawn()
            .expect("sh runs");
        let words = process.stdin.take();
        let answers = BufReader::new(process.stdout.take().expect("a pipe from the shell"));
        Arc::new(Self { name, folder, shell: Mutex::new(Shell { process, words, answers }) })
    }

    fn ask(&self, word: &str) -> String {
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        let words = shell.words.as_mut().expect("the shell is asked nothing after it was dismissed");
        let mut answer = String::new();
        let requested = writeln!(words, "{word}").and_then(|()| shell.answers.read_line(&mut answer));
        requested.unwrap_or_else(|error| panic!("the shell of {} is gone: {error}", self.name));
        answer.trim().to_owned()
    }

    /// Copies a folder into the private one, under the same name. Blocks.
    pub(super) fn copy(&self, from: &Path) {
        let answer = self.ask(&format!("copy {}", from.display()));
        assert_eq!(answer, "yes", "{} is not copied:\n{}", from.display(), self.log_tail());
    }

    /// Starts the process with more arguments, split at spaces, and waits until `ready` holds. Returns false
    /// when it ended instead.
    pub(super) async fn start(
        self: &Arc<Self>,
        arguments: String,
        ready: impl Fn() -> bool + Send + Sync + 'static,
    ) -> bool {
        let ready = Arc::new(ready);
        let requested = Arc::clone(self);
        beside(move || requested.ask(&format!("start {arguments}"))).await;
        let since = Instant::now();
        loop {
            let (requested, ready) = (Arc::clone(self), Arc::clone(&ready));
            match beside(move || if ready() { Some(true) } else { requested.ended().then_some(false) }).await
            {
                Some(runs) => return runs,
                None if since.elapsed() > PATIENCE => {
                    panic!(
                        "{} does not answer {} s after its start:\n{}",
                        self.name,
                        PATIENCE.as_secs(),
                        self.log_tail()
                    )
                }
                None => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }

    fn ended(&self) -> bool {
        self.ask("alive") == "no"
    }

    /// Sends a signal and waits until the process has ended.
    pub(super) async fn end(self: &Arc<Self>, signal: &'static str) {
        let requested = Arc::clone(self);
        beside(move || requested.ask(signal)).await;
    }

    /// Returns the last lines of the server's output, for messages.
    pub(super) fn log_tail(&self) -> String {
        let log = std::fs::read(self.folder.join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Returns the server's private folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a server on a port of its own, or on another one if the first is taken.
    pub(super) async fn start_on_a_port(
        self: &Arc<Self>,
        arguments: impl Fn(u16) -> String,
        ready: impl Fn(u16) -> bool + Clone + Send + Sync + 'static,
    ) -> Port {
        for _ in 0..5 {
            let port = beside(Port::reserve).await;
            let (number, ready) = (port.number(), ready.clone());
            if self.start(arguments(number), move || ready(number)).await {
                return port;
            }
            if !self.log_tail().to_lowercase().contains("address already in use") {
                break;
            }
        }
        panic!("{} does not start:\n{}", self.name, self.log_tail());
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        let shell = self.shell.get_mut().unwrap_or_else(PoisonError::into_inner);
        drop(shell.words.take());
        if let Err(error) = shell.process.wait() {
            eprintln!("the shell of {} cannot be waited for: {error}", self.name);
        }
    }
}
