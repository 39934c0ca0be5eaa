//! `turnstone job list`: jobs, newest first.

use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::process::ExitCode;
use turnstone_domain::JobState;

const COLUMNS: &[Column] = &[
    column("ID", |job| plain(&job["id"])),
    column("STATE", |job| plain(&job["state"])),
    column("TYPE", |job| plain(&job["type"])),
    column("QUEUE", |job| plain(&job["queue"])),
    column("ATTEMPT", |job| plain(&job["attempt"])),
    column("ENQUEUED", |job| time(&job["enqueued_at"])),
];

/// `turnstone job list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Only jobs in this state
    #[arg(long, value_parser = PossibleValuesParser::new(JobState::ALL.map(JobState::as_str)))]
    pub state: Option<String>,
    /// Only jobs of this queue
    #[arg(long)]
    pub queue: Option<String>,
    /// Only jobs of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: Option<String>,
    /// At most this many
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    pub limit: usize,
}

/// Prints the list.
///
/// # Errors
/// The server cannot be asked.
pub async fn run(args: &ListArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let client = session.client()?;
    let filters = [("state", &args.state), ("queue", &args.queue), ("type", &args.job_type)];
    let filters: Vec<(&str, String)> =
        filters.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
    let (jobs, total) = client.list(&["ojs", "v1", "admin", "jobs"], &filters, args.limit).await?;
    session.output.list(&jobs, "id", COLUMNS)?;
    let shown = jobs.len();
    if let Some(total) = total.filter(|total| usize::try_from(*total).is_ok_and(|total| total > shown)) {
        session.output.remark(&format!("{shown} of {total} jobs; --limit shows more"));
    }
    Ok(ExitCode::SUCCESS)
}
