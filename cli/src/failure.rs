//! The failure of a command: the cause, the next step, and the exit code. No other file decides about exit codes.

use crate::output;
use serde_json::Value;
use std::fmt;
use std::io;
use std::process::ExitCode;

/// The exit codes of the program. Scripts rely on them, so a code never changes its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// 0: the command succeeded.
    Ok,
    /// 1: it failed.
    Failed,
    /// 2: the command line or the configuration is wrong.
    Usage,
    /// 3: the server does not know the key, or does not allow the request.
    Auth,
    /// 4: the job, agent or other thing does not exist.
    NotFound,
    /// 5: the state of the thing does not allow this.
    Conflict,
    /// 130: interrupted by Ctrl-C.
    Interrupted,
}

impl Exit {
    /// Returns the number that the shell sees.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Auth => 3,
            Self::NotFound => 4,
            Self::Conflict => 5,
            Self::Interrupted => 130,
        }
    }

    /// Returns the exit that belongs to an HTTP status.
    #[must_use]
    pub fn of_status(status: u16) -> Self {
        match status {
            // With 303 the request was accepted, and the response names the address of the result.
            200..=299 | 303 => Self::Ok,
            401 | 403 => Self::Auth,
            404 => Self::NotFound,
            409 => Self::Conflict,
            _ => Self::Failed,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}

/// The error of a command, as it is printed.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// The exit code of the program.
    pub exit: Exit,
    /// The cause, in one sentence without a full stop.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
    /// The facts of the server's error, if a server answered.
    pub refusal: Option<Box<Refusal>>,
    /// True if a server answered in a form that this program cannot read.
    pub is_unreadable: bool,
}

/// The facts of an error response.
#[derive(Clone, PartialEq, Debug)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: Option<String>,
    /// The id of the request, for the server's logs.
    pub request_id: Option<String>,
    /// Further facts for programs, by their names.
    pub details: Value,
}

impl Failure {
    /// Returns a failure with this exit.
    #[must_use]
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None, refusal: None, is_unreadable: false }
    }

    /// Returns a failure with exit code 1.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }

    /// Returns the failure for a wrong command line or configuration.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }

    /// Adds the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Reads a server's error response. A body without the shape `{"error":{…}}` is reported by its status.
    #[must_use]
    pub fn of_answer(status: u16, body: &str) -> Self {
        let exit = Exit::of_status(status);
        let mut parsed: Value = serde_json::from_str(body).unwrap_or_default();
        let error = parsed.get_mut("error").map(Value::take).unwrap_or_default();
        let word = |name: &str| error[name].as_str().filter(|word| !word.is_empty()).map(str::to_owned);
        let details = error["details"].clone();
        let message = word("message").unwrap_or_else(|| format!("the server answered {status}"));
        // Here the server's hint speaks of headers and endpoints. The user of the command line needs a flag or a command.
        let own = match status {
            401 => hint_for(exit, status),
            404 => listing(&message),
            _ => None,
        };
        Self {
            exit,
            hint: own.or_else(|| word("hint")).or_else(|| hint_for(exit, status)),
            message,
            refusal: Some(Box::new(Refusal {
                status,
                code: word("code"),
                request_id: word("request_id"),
                details,
            })),
            is_unreadable: false,
        }
    }

    /// Returns true if another try may succeed: no server answered, it has too many requests (429), or it failed itself (5xx).
    #[must_use]
    pub fn is_passing(&self) -> bool {
        let is_passing = |refusal: &Refusal| refusal.status == 429 || refusal.status >= 500;
        !self.is_unreadable && self.refusal.as_deref().is_none_or(is_passing)
    }
}

/// Returns the next step for an error of the server that has no hint of its own.
fn hint_for(exit: Exit, status: u16) -> Option<String> {
    let hint = match exit {
        Exit::Auth if status == 401 => {
            "set TURNSTONE_API_KEY, or name the key with --api-key-ref env:NAME or file:/path"
        }
        Exit::Auth => "the key lacks the role or the scope; `turnstone key whoami` shows what it has",
        Exit::NotFound => "check the id and the --url; `turnstone job list` shows the jobs",
        _ if status >= 500 => "try again; the log of the server has the cause",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// The kinds of things in messages of the server, and the commands that list them.
const LISTED: [(&str, &str); 9] = [
    ("agent", "agent list"),
    ("budget", "budget list"),
    ("cron", "cron list"),
    ("engagement", "engagement list"),
    ("review", "review list --state all"),
    ("queue", "queue list"),
    ("webhook", "webhook list"),
    ("worker", "worker list"),
    ("workflow", "workflow list"),
];

/// Returns the hint with the command that lists the existing names, for a message of the form `There is no <kind> …`.
fn listing(message: &str) -> Option<String> {
    let kind = message.strip_prefix("There is no ")?.split(' ').next()?;
    let (_, command) = LISTED.iter().find(|(known, _)| *known == kind)?;
    Some(format!("`turnstone {command}` shows the existing ones"))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message.trim_end_matches('.'))?;
        let Some(refusal) = &self.refusal else { return Ok(()) };
        let request = refusal.request_id.as_ref().map(|id| format!("request {id}"));
        let facts: Vec<&str> = refusal.code.as_deref().into_iter().chain(request.as_deref()).collect();
        if facts.is_empty() { Ok(()) } else { write!(f, " ({})", facts.join(", ")) }
    }
}

impl std::error::Error for Failure {}

/// Prints an error on standard error as `error: …` and `hint: …`, and returns the exit code of the program.
pub fn report(error: &anyhow::Error) -> Exit {
    let (exit, words) = reported(error);
    words.iter().for_each(|words| output::say(words));
    exit
}

/// Returns the exit code of the program, and the lines that are printed.
#[must_use]
pub fn reported(error: &anyhow::Error) -> (Exit, Vec<String>) {
    let broken_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(broken_pipe) {
        // The reader closed the pipe, as in `turnstone job list | head`.
        return (Exit::Ok, Vec::new());
    }
    let failure = error.downcast_ref::<Failure>();
    let hint = failure.and_then(|failure| failure.hint.as_ref()).map(|hint| format!("hint: {hint}"));
    let words = std::iter::once(format!("error: {error:#}")).chain(hint).collect();
    (failure.map_or(Exit::Failed, |failure| failure.exit), words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    fn printed(error: anyhow::Error) -> (Exit, String) {
        let (exit, words) = reported(&error);
        (exit, words.join("\n"))
    }

    #[test]
    fn every_status_has_its_exit_code() {
        let codes: Vec<u8> = [200, 201, 400, 401, 403, 404, 409, 422, 429, 500, 503]
            .map(|s| Exit::of_status(s).number())
            .into();
        assert_eq!(codes, [0, 0, 1, 3, 3, 4, 5, 1, 1, 1, 1]);
        assert_eq!((Exit::Usage.number(), Exit::Interrupted.number()), (2, 130));
    }

    #[test]
    fn the_servers_own_words_are_shown_with_its_request_id() {
        let body = r#"{"error":{"code":"not_found","message":"There is no job x.","hint":"List the jobs.","request_id":"req_7"}}"#;
        let (exit, text) = printed(Failure::of_answer(404, body).into());
        assert_eq!(exit, Exit::NotFound);
        assert_eq!(text, "error: There is no job x (not_found, request req_7)\nhint: List the jobs.");
    }

    #[test]
    fn a_hint_names_the_command_that_helps() {
        let of = |status, message: &str| {
            let body = format!(r#"{{"error":{{"message":"{message}","hint":"Send a header."}}}}"#);
            Failure::of_answer(status, &body).hint.unwrap_or_default()
        };
        assert_eq!(of(404, "There is no budget x."), "`turnstone budget list` shows the existing ones");
        assert_eq!(of(404, "There is no job x."), "Send a header.");
        assert!(of(401, "No key.").contains("TURNSTONE_API_KEY"));
        assert_eq!(of(409, "It waits."), "Send a header.");
    }

    #[test]
    fn an_answer_of_another_shape_is_reported_by_its_status() {
        let failure = Failure::of_answer(502, "<html>bad gateway</html>");
        assert_eq!((failure.exit, failure.is_passing()), (Exit::Failed, true));
        assert!(failure.to_string().contains("502"), "{failure}");
        assert!(!Failure::of_answer(422, "{}").is_passing());
    }

    #[test]
    fn a_closed_pipe_is_no_failure() {
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        let error = Err::<(), _>(gone).context("cannot print").unwrap_err();
        assert_eq!(printed(error), (Exit::Ok, String::new()));
    }
}
