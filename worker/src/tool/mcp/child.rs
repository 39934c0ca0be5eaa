//! The process of an MCP server over stdio: its environment, the bounds of its output, and its end.

use super::config::McpConfig;
use crate::tool::header::{HeaderText, SecretHeader};
use crate::tool::outbound::ending;
use crate::tool::program::Programs;
use rustix::process::{Pid, Signal, kill_process_group};
use std::pin::Pin;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use std::{fmt, io};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;
use turnstone_telemetry::redact;

/// The variables that a server inherits from this process; none of them can be a secret.
const INHERITED: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ"];

/// The most bytes of its latest standard error that are kept, to explain its end.
const TAIL: usize = 2048;

/// The most characters of that in an error.
const LAST_WORDS: usize = 300;

/// The words of a program that could not open a file.
const DENIED: [&str; 3] = ["ermission denied", "EACCES", "PermissionError"];

/// The time for a server to exit after its input was closed.
const FAREWELL: Duration = Duration::from_secs(1);

/// The time until the exit status of a process that closed its output can be read.
const EXIT: Duration = Duration::from_millis(200);

/// A server's process with its process group: both are killed when this is dropped.
pub(super) struct Process {
    child: AsyncMutex<Option<Child>>,
    group: Option<Pid>,
    said: Arc<Mutex<Vec<u8>>>,
    /// Reads standard error to its end.
    listening: AsyncMutex<Option<JoinHandle<()>>>,
    flooded: Arc<AtomicBool>,
    /// Its folder for temporary files if it runs in a sandbox, which is removed with this.
    scratch: Option<TempDir>,
}

/// Its standard output, with a limit for the length of a line.
pub(super) struct Lines {
    stdout: ChildStdout,
    line: usize,
    limit: usize,
    flooded: Arc<AtomicBool>,
}

impl Process {
    /// Starts the program in a process group of its own.
    ///
    /// # Errors
    /// A sentence that names the program or the variable whose secret is missing.
    pub(super) fn start(
        config: &McpConfig,
        programs: &Programs,
        longest_line: usize,
    ) -> Result<(Self, Lines, ChildStdin), String> {
        let [program, arguments @ ..] = config.command.as_slice() else {
            return Err("there is no command".to_owned());
        };
        let (mut command, scratch) = programs.command(program, &config.program)?;
        command.args(arguments).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in INHERITED.iter().filter(|_| !config.of_document) {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Some(folder) = &config.cwd {
            command.current_dir(folder);
        }
        if let Some(scratch) = &scratch {
            command.env("TMPDIR", scratch.path());
        }
        for (name, value) in &config.env {
            let value = match value {
                HeaderText::Literal(text) => text.clone(),
                HeaderText::Given(value) => value.expose().to_owned(),
                HeaderText::Secret(SecretHeader { secret, prefix }) => {
                    let secret = secret.resolve().map_err(|problem| format!("env.{name}: {problem}"))?;
                    format!("{prefix}{}", secret.expose())
                }
            };
            command.env(name, value);
        }
        let mut child = command.spawn().map_err(|error| format!("`{program}` cannot be started: {error}"))?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(format!("`{program}` was started without its pipes"));
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let listening = AsyncMutex::new(Some(tokio::spawn(listen(stderr, Arc::clone(&said)))));
        let flooded = Arc::new(AtomicBool::new(false));
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let lines = Lines { stdout, line: 0, limit: longest_line, flooded: Arc::clone(&flooded) };
        let child = AsyncMutex::new(Some(child));
        let process = Self { child, group, said, listening, flooded, scratch };
        Ok((process, lines, stdin))
    }

    /// Returns the reason why the process takes no more requests, and kills the rest of its group.
    pub(super) async fn epitaph(&self) -> String {
        let flooded = self.flooded.load(Ordering::Acquire);
        let ended = match self.child.lock().await.as_mut() {
            Some(child) if !flooded => {
                tokio::time::timeout(EXIT, child.wait()).await.ok().and_then(Result::ok)
            }
            _ => None,
        };
        self.kill();
        // Its latest error output may not have been read yet.
        if let Some(listening) = self.listening.lock().await.take() {
            let _ = tokio::time::timeout(EXIT, listening).await;
        }
        let mut text = match (ended, flooded) {
            (_, true) => "it sent a message that is longer than allowed and was stopped".to_owned(),
            (Some(status), _) => format!("it ended ({status})"),
            (None, _) => "it closed its output and was stopped".to_owned(),
        };
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if !said.is_empty() {
            text = format!("{text}; its last words: {}", ending(&String::from_utf8_lossy(&said), LAST_WORDS));
        }
        if self.scratch.is_some() && DENIED.iter().any(|denied| text.contains(denied)) {
            text = format!(
                "{text}; it runs in a sandbox: `program.read` and `program.write` open more files to it"
            );
        }
        text
    }

    /// Waits for the process to exit after its input was closed, and kills it when it does not.
    pub(super) async fn leave(&self) {
        let child = self.child.lock().await.take();
        if let Some(mut child) = child {
            let _ = tokio::time::timeout(FAREWELL, child.wait()).await;
        }
        self.kill();
    }

    fn kill(&self) {
        // No error if the group is empty; a group exists as long as one of its processes does.
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("group", &self.group).finish_non_exhaustive()
    }
}

/// Reads the server's standard error to its end, and keeps the last part.
async fn listen(mut stderr: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = [0_u8; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        tracing::debug!(said = redact(&String::from_utf8_lossy(&chunk[..read])).trim_end(), "an MCP server");
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        said.extend_from_slice(&chunk[..read]);
        let beyond = said.len().saturating_sub(TAIL);
        said.drain(..beyond);
    }
}

impl AsyncRead for Lines {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stdout).poll_read(context, buffer))?;
        let fresh = &buffer.filled()[before..];
        self.line = match fresh.iter().rposition(|byte| *byte == b'\n') {
            Some(at) => fresh.len() - at - 1,
            None => self.line + fresh.len(),
        };
        if self.line > self.limit {
            self.flooded.store(true, Ordering::Release);
            return Poll::Ready(Err(io::Error::other("a message is longer than allowed")));
        }
        Poll::Ready(Ok(()))
    }
}
