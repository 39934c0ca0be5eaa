//! `turnstone job watch`: a job's timeline as it happens.

use super::waiting::{Fleet, reason};
use crate::client::stream::Ending;
use crate::client::{Client, unwrapped};
use crate::commands::Session;
use crate::commands::dev::timeline::{Detail, SeenEvent, Timeline};
use crate::failure::Exit;
use crate::output::{Format, Output, columns, table, text};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;

/// How long a job may be unclaimed before a remark is printed.
const PATIENCE: Duration = Duration::from_secs(5);

/// `turnstone job watch`.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// The job's id, or its first characters
    #[arg(required_unless_present = "tag")]
    pub id: Option<String>,
    /// Follow all jobs with this tag instead
    #[arg(long, conflicts_with = "id", value_name = "TAG")]
    pub tag: Option<String>,
}

/// Follows the job to its end and prints its result or its error. Ctrl-C ends the watching, not the job.
///
/// # Errors
/// There is no such job, or the server cannot be reached any more.
pub async fn run(id: &str, client: &Client, session: &Session, detail: Detail) -> anyhow::Result<ExitCode> {
    let output = session.output;
    let mut timeline = (output.format == Format::Table).then(|| Timeline::new(output, detail));
    let watching = client.watch(id, |event| match (&mut timeline, output.format) {
        (Some(timeline), _) => timeline.event(&SeenEvent::read(event)),
        (None, Format::Json) => output.ndjson(event),
        (None, _) => Ok(()),
    });
    let watched = tokio::select! {
        watched = watching => watched,
        never = explain_silence(id, client, &output) => match never {},
    };
    drop(timeline);
    let ending = watched?;
    match output.format {
        Format::Table => {
            let job = unwrapped(client.get(&["ojs", "v1", "jobs", id], &[]).await?, "job");
            if let Some(said) = outcome(&job, ending) {
                output.line(&format!("\n{}", text::wrapped(&said, columns(&output))))?;
            }
        }
        Format::Ids => output.line(&text::line(id))?,
        Format::Json => {}
    }
    Ok(match ending {
        Ending::Completed => Exit::Ok.into(),
        Ending::Unsuccessful => Exit::Failed.into(),
    })
}

/// Prints once why no worker takes the job, after it was unclaimed for a while. Never ends.
async fn explain_silence(id: &str, client: &Client, output: &Output) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(PATIENCE).await;
        // Watching continues regardless of this, and reports an unreachable server.
        let Ok(job) = client.get(&["ojs", "v1", "jobs", id], &[]).await else { continue };
        let job = unwrapped(job, "job");
        if job["state"] != "available" {
            continue;
        }
        let Ok(fleet) = Fleet::ask(client).await else { continue };
        if let Ok(Some(why)) = reason(&job, Some(&fleet), client).await {
            output.remark(&format!("still waiting: {why}"));
            return std::future::pending().await;
        }
    }
}

/// Returns the outcome of the job.
fn outcome(job: &Value, ending: Ending) -> Option<String> {
    let id = text::line(&table::plain(&job["id"]));
    if ending == Ending::Completed {
        return Some(format!("result of {id}:\n{}", result(&job["result"])));
    }
    let error = &job["error"];
    let message = error["message"].as_str()?;
    let reported = format!("{}: {message}", table::plain(&error["code"]));
    Some(format!("error of {id}:\n{}", text::block(&reported)))
}

fn result(result: &Value) -> String {
    match result {
        Value::String(words) => text::block(words).into_owned(),
        other => text::json(&serde_json::to_string_pretty(other).unwrap_or_default()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_are_reported_in_full() {
        let advice = "x".repeat(400) + "; raise it with `turnstone budget raise fleet`";
        let job = json!({"id": "j", "error": {"code": "C", "message": advice}});
        assert_eq!(outcome(&job, Ending::Unsuccessful).unwrap(), format!("error of j:\nC: {advice}"));
        assert_eq!(outcome(&json!({"id": "j"}), Ending::Unsuccessful), None);
        let job = json!({"id": "j", "result": "done"});
        assert_eq!(outcome(&job, Ending::Completed).unwrap(), "result of j:\ndone");
    }
}
