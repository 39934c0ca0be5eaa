//! `turnstone job watch`: a job's timeline as it happens.

use super::waiting::{Fleet, reason};
use crate::client::Client;
use crate::client::stream::Ending;
use crate::commands::Session;
use crate::commands::dev::timeline::{Detail, SeenEvent, Timeline};
use crate::failure::Exit;
use crate::output::{Format, Output, columns, text};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;
use std::time::Duration;
use turnstone_domain::{JobState, RawJson};
use turnstone_ojs::JobBody;

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
            let job = client.member(&["ojs", "v1", "jobs", id], &[], "job").await?;
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
        let job = client.member::<JobBody>(&["ojs", "v1", "jobs", id], &[], "job").await;
        let Ok(job) = job else { continue };
        if job.state != JobState::Available {
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
fn outcome(job: &JobBody, ending: Ending) -> Option<String> {
    let id = text::line(&job.id);
    if ending == Ending::Completed {
        let result = job.result.as_ref().map_or_else(|| "null".to_owned(), result);
        return Some(format!("result of {id}:\n{result}"));
    }
    let error = job.error.as_ref()?;
    let reported = format!("{}: {}", error.code, error.message);
    Some(format!("error of {id}:\n{}", text::block(&reported)))
}

/// Returns the result of a job for people: a text as it is, anything else as indented JSON.
#[must_use]
pub fn result(result: &RawJson) -> String {
    match result.parse() {
        Ok(Value::String(words)) => text::block(&words).into_owned(),
        Ok(other) => text::json(&serde_json::to_string_pretty(&other).unwrap_or_default()).into_owned(),
        // A number that is out of range stays the text that it is.
        Err(_) => text::json(result.as_str()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::job::sample;
    use serde_json::json;

    #[test]
    fn errors_are_reported_in_full() {
        let advice = "x".repeat(400) + "; raise it with `turnstone budget raise fleet`";
        let at = "2026-01-31T12:00:00Z";
        let job = sample(
            &json!({"error": {"code": "C", "type": "t", "message": advice, "retryable": false, "details": {},
                                           "attempt": 1, "occurred_at": at, "timestamp": at}}),
        );
        assert_eq!(outcome(&job, Ending::Unsuccessful).unwrap(), format!("error of j:\nC: {advice}"));
        assert_eq!(outcome(&sample(&json!({})), Ending::Unsuccessful), None);
        let job = sample(&json!({"result": "done"}));
        assert_eq!(outcome(&job, Ending::Completed).unwrap(), "result of j:\ndone");
    }
}
