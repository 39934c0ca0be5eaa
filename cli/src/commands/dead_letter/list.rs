//! `turnstone dead-letter list`: dead letters with their last error.

use crate::client::Client;
use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use clap::Args;
use std::process::ExitCode;
use turnstone_ojs::JobBody;

const COLUMNS: &[Column<JobBody>] = &[
    column("ID", |job| plain(&job.id)),
    column("TYPE", |job| plain(&job.job_type)),
    column("QUEUE", |job| plain(&job.queue)),
    column("ATTEMPTS", |job| plain(&job.attempt)),
    column("DISCARDED", |job| time(&job.discarded_at)),
    column("ERROR", |job| {
        job.error.as_ref().map(|error| format!("{}: {}", error.code, error.message)).unwrap_or_default()
    }),
];

/// `turnstone dead-letter list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Only those of this queue
    #[arg(long)]
    pub queue: Option<String>,
    /// Only those of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub job_type: Option<String>,
    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// At most this many
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    pub limit: usize,
}

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(args: &ListArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let filters = [("queue", &args.queue), ("type", &args.job_type), ("tag", &args.tag)];
    let filters: Vec<(&str, String)> =
        filters.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))).collect();
    let path = ["ojs", "v1", "dead-letter"];
    let client = session.client()?;
    let (jobs, total) = client.slices(&path, &filters, "jobs", args.limit).await?;
    session.output.list(&jobs, |job| &job.id, COLUMNS)?;
    if jobs.is_empty() {
        remark_on_discarded(&client, &filters, session).await;
    }
    let shown = jobs.len();
    if let Some(total) = total.filter(|total| usize::try_from(*total).is_ok_and(|total| total > shown)) {
        session.output.remark(&format!("{shown} of {total} dead letters; --limit shows more"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints a remark when jobs were discarded and are no dead letters, which is the default of a retry policy.
async fn remark_on_discarded(client: &Client, filters: &[(&str, String)], session: &Session) {
    let filters = [filters, &[("state", "discarded".to_owned())]].concat();
    // This is only a remark: a caller that may not list jobs gets none.
    let discarded = client.list::<JobBody>(&["ojs", "v1", "admin", "jobs"], &filters, 1).await;
    let Ok((jobs, total)) = discarded else { return };
    if !jobs.is_empty() {
        let count = total.unwrap_or(1);
        session.output.remark(&format!(
            "discarded jobs that are no dead letters, as on_exhaustion of their retry policy is not dead_letter: {count} \
             (turnstone job list --state discarded)"
        ));
    }
}
