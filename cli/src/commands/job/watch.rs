//! `turnstone job watch`: a job's timeline as it happens.

use crate::client::stream::Ending;
use crate::client::{Client, unwrapped};
use crate::commands::Session;
use crate::commands::dev::timeline::{SeenEvent, Timeline};
use crate::failure::Exit;
use crate::output::{Format, text};
use clap::Args;
use serde_json::Value;
use std::process::ExitCode;

/// `turnstone job watch`.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// The job's id
    pub id: String,
}

/// Follows the job to its end and prints its result. Ctrl-C ends the watching, not the job.
///
/// # Errors
/// There is no such job, or the server cannot be reached any more.
pub async fn run(id: &str, client: &Client, session: &Session) -> anyhow::Result<ExitCode> {
    let output = session.output;
    let mut timeline = (output.format == Format::Table).then(|| Timeline::new(output));
    let watched = client
        .watch(id, |event| match (&mut timeline, output.format) {
            (Some(timeline), _) => timeline.event(&SeenEvent::read(event)),
            (None, Format::Json) => output.ndjson(event),
            (None, _) => Ok(()),
        })
        .await;
    drop(timeline);
    let ending = watched?;
    match output.format {
        Format::Table if ending == Ending::Completed => {
            let job = unwrapped(client.get(&["ojs", "v1", "jobs", id], &[]).await?, "job");
            output.line(&format!("\nresult of {}:\n{}", text::line(id), result(&job["result"])))?;
        }
        Format::Ids => output.line(&text::line(id))?,
        _ => {}
    }
    Ok(match ending {
        Ending::Completed => Exit::Ok.into(),
        Ending::Unsuccessful => Exit::Failed.into(),
    })
}

fn result(result: &Value) -> String {
    match result {
        Value::String(words) => text::block(words).into_owned(),
        other => text::json(&serde_json::to_string_pretty(other).unwrap_or_default()).into_owned(),
    }
}
