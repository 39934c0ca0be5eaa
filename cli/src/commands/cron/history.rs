//! `turnstone cron history`: the jobs that an entry made.

use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use std::process::ExitCode;

const COLUMNS: &[Column] = &[
    column("JOB", |job| plain(&job["id"])),
    column("STATE", |job| plain(&job["state"])),
    column("ENQUEUED", |job| time(&job["enqueued_at"])),
    column("ENDED", |job| {
        let ends = ["completed_at", "cancelled_at", "discarded_at"];
        ends.into_iter().map(|name| time(&job[name])).find(|time| !time.is_empty()).unwrap_or_default()
    }),
];

/// Prints the list.
///
/// # Errors
/// The request fails, or there is no such entry.
pub async fn run(name: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let path = ["ojs", "v1", "cron", name, "history"];
    let (jobs, _) = session.client()?.pages(&path, &[], "jobs", usize::MAX).await?;
    session.output.list(&jobs, "id", COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
