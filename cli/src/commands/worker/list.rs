//! `turnstone worker list`: the workers of the fleet.

use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;
use turnstone_api::answers::Worker;

const COLUMNS: &[Column<Worker>] = &[
    column("NAME", |worker| plain(&worker.name)),
    column("STATE", state),
    column("BUSY", busy),
    column("QUEUES", queues),
    column("HOST", |worker| plain(&worker.host)),
    column("PID", |worker| plain(&worker.pid)),
    column("VERSION", |worker| plain(&worker.version)),
    column("STARTED", |worker| time(&worker.started_at)),
    column("SEEN", |worker| time(&worker.seen_at)),
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

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(args: &ListArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    loop {
        let workers: Vec<_> = client.get(&["workers"], &[]).await?;
        if args.watch {
            output.clear()?;
        }
        output.list(&workers, |worker| &worker.name, COLUMNS)?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the state that it reported last, unless that is too long ago.
fn state(worker: &Worker) -> String {
    if worker.alive { worker.state.clone() } else { "silent".to_owned() }
}

/// Returns the jobs in flight. Those of a silent worker are unknown, as other workers have taken over its jobs.
fn busy(worker: &Worker) -> String {
    let busy = if worker.alive { worker.busy.to_string() } else { "-".to_owned() };
    format!("{busy} of {}", worker.slots)
}

fn queues(worker: &Worker) -> String {
    if worker.queues.iter().any(|name| name == "*") {
        "every queue".to_owned()
    } else {
        worker.queues.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_worker_that_was_not_heard_of_is_silent() {
        let at = "2026-01-31T12:00:00Z";
        let worker = json!({
            "name": "w", "instance": "i", "host": "h", "pid": 1, "version": "1", "kind": "own", "started_at": at, "seen_at": at,
            "state": "running", "alive": true, "queues": ["a", "b"], "busy": 2, "slots": 4,
        });
        let mut worker: Worker = serde_json::from_value(worker).unwrap();
        assert_eq!(busy(&worker), "2 of 4");
        assert_eq!((state(&worker), queues(&worker)), ("running".to_owned(), "a, b".to_owned()));
        worker.alive = false;
        worker.queues = vec!["*".to_owned()];
        assert_eq!(busy(&worker), "- of 4", "another worker has its jobs now");
        assert_eq!((state(&worker), queues(&worker)), ("silent".to_owned(), "every queue".to_owned()));
    }
}
