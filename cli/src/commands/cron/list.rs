//! `turnstone cron list`: entries with their next time.

use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use std::process::ExitCode;
use turnstone_ojs::cron::CronBody;

const COLUMNS: &[Column<CronBody>] = &[
    column("NAME", |cron| plain(&cron.name)),
    column("WHEN", |cron| plain(&cron.expression)),
    column("ZONE", |cron| plain(&cron.timezone)),
    column("TYPE", |cron| plain(&cron.job_type)),
    column("STATE", |cron| if cron.enabled { "active".to_owned() } else { "paused".to_owned() }),
    column("NEXT", |cron| time(&cron.next_run_at)),
    column("LAST", |cron| time(&cron.last_run_at)),
    column("RUNS", |cron| plain(&cron.run_count)),
];

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let crons: Vec<_> = super::CRONS.all(&session.client()?).await?;
    session.output.list(&crons, |cron| &cron.name, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
