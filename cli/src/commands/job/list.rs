//! `turnstone job list`: jobs, newest first.

use super::chosen::Filters;
use super::waiting::{Fleet, list_with_reasons, reason, reasons};
use crate::client::{Client, Received};
use crate::commands::{Session, since};
use crate::output::Format;
use crate::output::table::{Column, column, plain};
use clap::Args;
use clap::builder::PossibleValuesParser;
use std::process::ExitCode;
use turnstone_domain::JobState;
use turnstone_ojs::{JobBody, OpenValue};

const COLUMNS: &[Column<JobBody>] = &[
    column("ID", |job| plain(&job.id)),
    column("STATE", |job| plain(&job.state)),
    column("TYPE", |job| plain(&job.job_type)),
    column("AGENT", |job| job.meta.get("agent").map(plain).unwrap_or_default()),
    column("QUEUE", |job| plain(&job.queue)),
    column("ATTEMPT", |job| plain(&job.attempt)),
    column("AGE", |job| since::age(&job.enqueued_at)),
    column("DURATION", since::duration),
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
    #[command(flatten)]
    pub filters: Filters,
    /// Only jobs with this value of a member of their meta; dots lead into objects. The server reads every job that the
    /// other filters find, so this takes longer than they do
    #[arg(long, value_name = "KEY=VALUE", value_parser = member)]
    pub meta: Option<String>,
    /// At most this many
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    pub limit: usize,
}

/// Checks that a member of `meta` is named with its value.
fn member(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((path, _)) if !path.is_empty() => Ok(text.to_owned()),
        _ => Err("write KEY=VALUE, such as customer=42 or user.id=ada".to_owned()),
    }
}

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(args: &ListArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let client = session.client()?;
    let filters =
        [("state", &args.state), ("queue", &args.queue), ("type", &args.job_type), ("meta", &args.meta)];
    let mut filters: Vec<(&str, String)> =
        filters.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
    filters.extend(args.filters.query());
    let (jobs, total) = client.list(&["ojs", "v1", "admin", "jobs"], &filters, args.limit).await?;
    let is_table = session.output.format == Format::Table;
    let reasons = if is_table { waiting(&jobs, &client).await } else { Vec::new() };
    list_with_reasons(&session.output, &jobs, |job| &job.id, COLUMNS, &reasons)?;
    for (job, why) in jobs.iter().filter_map(|job| Some((job, job.damaged.as_ref()?))) {
        session.output.remark(&format!("{} cannot be read: {why}", job.id));
    }
    let shown = jobs.len();
    if let Some(total) = total.filter(|total| usize::try_from(*total).is_ok_and(|total| total > shown)) {
        session.output.remark(&format!("{shown} of {total} jobs; --limit shows more"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the reason of each job.
async fn waiting(jobs: &[Received<JobBody>], client: &Client) -> Vec<Option<String>> {
    let waits = |job: &Received<JobBody>| {
        matches!(job.state, OpenValue::Known(JobState::Pending | JobState::Available))
    };
    if !jobs.iter().any(waits) {
        return Vec::new();
    }
    // The list is shown even if the key may not read the rest, such as a tenant's key.
    let fleet = Fleet::ask(client).await.ok();
    reasons(jobs, async |job| {
        if !waits(job) {
            return None;
        }
        reason(job, fleet.as_ref(), client).await.ok().flatten()
    })
    .await
}
