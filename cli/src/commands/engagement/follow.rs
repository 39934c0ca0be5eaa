//! `turnstone engagement follow`: the events of an engagement as they happen.

use crate::commands::Session;
use crate::commands::dev::timeline::{Detail, SeenEvent, Timeline};
use crate::failure::Exit;
use crate::output::{Format, text};
use std::ops::ControlFlow;
use std::process::ExitCode;
use turnstone_api::answers::State;
use turnstone_domain::JobState;
use turnstone_ojs::JobBody;

/// Follows it. Ctrl-C ends the following, not the engagement.
///
/// # Errors
/// There is no such engagement, or the server cannot be reached any more.
pub async fn run(id: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let mut timeline = (output.format == Format::Table).then(|| Timeline::new(output, Detail::of(output)));
    let mut cursor = String::new();
    let followed = client.follow_engagement(id, &mut cursor, |name, event| {
        match (&mut timeline, output.format) {
            // The whole answer follows with its turn.
            _ if name == "delta" => {}
            (Some(timeline), _) => timeline.event(&SeenEvent::read(event))?,
            (None, Format::Json) => output.ndjson(event)?,
            (None, _) => {}
        }
        Ok(ControlFlow::Continue(()))
    });
    followed.await?;
    drop(timeline);
    if output.format == Format::Ids {
        output.line(&text::line(id))?;
    }
    let State { job_id, .. } = client.get(&["engagements", id], &[]).await?;
    let job: JobBody = client.member(&["ojs", "v1", "jobs", &job_id], &[], "job").await?;
    Ok(if job.state == JobState::Completed { ExitCode::SUCCESS } else { Exit::Failed.into() })
}
