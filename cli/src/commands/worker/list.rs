//! `turnstone worker list`: the workers of the fleet.

use crate::client::elements;
use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;

const COLUMNS: &[Column] = &[
    column("NAME", |worker| plain(&worker["name"])),
    column("STATE", state),
    column("BUSY", busy),
    column("QUEUES", queues),
    column("HOST", |worker| plain(&worker["host"])),
    column("PID", |worker| plain(&worker["pid"])),
    column("VERSION", |worker| plain(&worker["version"])),
    column("STARTED", |worker| time(&worker["started_at"])),
    column("SEEN", |worker| time(&worker["seen_at"])),
];

/// `turnstone worker list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Print the list again every two seconds, until Ctrl-C
    #[arg(long, short)]
    pub watch: bool,
}

/// How often a watched list is printed.
const PAUSE: Duration = Duration::from_secs(2);
/// Clears a terminal.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(args: &ListArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    loop {
        let workers = elements(client.get(&["workers"], &[]).await?, "workers");
        if args.watch && output.tty {
            output.line(CLEAR)?;
        }
        output.list(&workers, "name", COLUMNS)?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the state that it reported last, unless that is too long ago.
fn state(worker: &Value) -> String {
    if worker["alive"] == false { "silent".to_owned() } else { plain(&worker["state"]) }
}

/// Returns the jobs in flight. Those of a silent worker are unknown, as other workers have taken over its jobs.
fn busy(worker: &Value) -> String {
    let slots = plain(&worker["slots"]);
    if worker["alive"] == false {
        format!("- of {slots}")
    } else {
        format!("{} of {slots}", plain(&worker["busy"]))
    }
}

fn queues(worker: &Value) -> String {
    let names = worker["queues"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
    if names.contains(&"*") { "every queue".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_worker_that_was_not_heard_of_is_silent() {
        let mut worker =
            json!({ "state": "running", "alive": true, "queues": ["a", "b"], "busy": 2, "slots": 4 });
        assert_eq!(busy(&worker), "2 of 4");
        assert_eq!((state(&worker), queues(&worker)), ("running".to_owned(), "a, b".to_owned()));
        worker["alive"] = false.into();
        worker["queues"] = json!(["*"]);
        assert_eq!(busy(&worker), "- of 4", "another worker has its jobs now");
        assert_eq!((state(&worker), queues(&worker)), ("silent".to_owned(), "every queue".to_owned()));
    }
}
