//! `turnstone cron history`: the jobs that an entry made.

use crate::commands::{Session, since};
use crate::output::table::{Column, column, plain, time};
use std::process::ExitCode;
use turnstone_ojs::JobBody;

const COLUMNS: &[Column<JobBody>] = &[
    column("JOB", |job| plain(&job.id)),
    column("STATE", |job| plain(&job.state)),
    column("ENQUEUED", |job| time(&job.enqueued_at)),
    column("ENDED", |job| time(&since::ended_at(job))),
];

/// Prints the list.
///
/// # Errors
/// The request fails, or there is no such entry.
pub async fn run(name: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let path = ["ojs", "v1", "cron", name, "history"];
    let most = [("limit", "100".to_owned())];
    let jobs: Vec<_> = session.client()?.member(&path, &most, "jobs").await?;
    session.output.list(&jobs, |job| &job.id, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
