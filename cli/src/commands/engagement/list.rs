//! `turnstone engagement list`: engagements, newest first.

use crate::client::{Client, Received};
use crate::commands::Session;
use crate::commands::job::waiting::{list_with_reasons, reason, reasons};
use crate::failure::Failure;
use crate::output::Format;
use crate::output::table::{Column, column, plain, time};
use clap::Args;
use std::process::ExitCode;
use turnstone_api::answers::{CursorEnd, ListedEngagement};
use turnstone_domain::JobState;

/// The most that the server returns at once.
const PAGE: usize = 200;

const COLUMNS: &[Column<ListedEngagement>] = &[
    column("ID", |one| plain(&one.engagement_id)),
    column("AGENT", |one| plain(&one.agent)),
    column("USER", |one| plain(&one.user.id)),
    column("TURNS", |one| plain(&one.turns)),
    column("JOB", |one| plain(&one.job_state)),
    column("STARTED", |one| time(&one.started_at)),
];

/// `turnstone engagement list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Only those of this agent
    #[arg(long, value_name = "NAME")]
    pub agent: Option<String>,
    /// Only those that began at this time or later, such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
    /// At most this many
    #[arg(long, short = 'n', default_value_t = 50, value_name = "N")]
    pub limit: usize,
}

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(args: &ListArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let filters = filters(args.agent.as_deref(), args.since.as_deref());
    let client = session.client()?;
    let found = newest(&client, &filters, args.limit).await?;
    let reasons = match session.output.format {
        Format::Table => parked(&found, &client).await,
        Format::Json | Format::Ids => Vec::new(),
    };
    list_with_reasons(&session.output, &found, |one| &one.engagement_id, COLUMNS, &reasons)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the reason of each parked engagement.
async fn parked(found: &[Received<ListedEngagement>], client: &Client) -> Vec<Option<String>> {
    reasons(found, async |one| {
        if one.job_state != JobState::Pending {
            return None;
        }
        let job = client.member(&["ojs", "v1", "jobs", &one.job_id], &[], "job").await.ok()?;
        reason(&job, None, client).await.ok().flatten()
    })
    .await
}

/// Returns the query of the filters that are given.
#[must_use]
pub fn filters(agent: Option<&str>, since: Option<&str>) -> Vec<(&'static str, String)> {
    let given = [("agent", agent), ("since", since)];
    given.into_iter().filter_map(|(name, value)| Some((name, value?.to_owned()))).collect()
}

/// Returns the newest `limit` engagements, read page by page.
///
/// # Errors
/// The error of the server or of the connection.
pub async fn newest(
    client: &Client,
    filters: &[(&str, String)],
    limit: usize,
) -> Result<Vec<Received<ListedEngagement>>, Failure> {
    let (mut found, mut cursor) = (Vec::new(), None::<String>);
    while found.len() < limit {
        let size = (limit - found.len()).min(PAGE);
        let part = [("limit", Some(size.to_string())), ("cursor", cursor)];
        let part = part.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let query: Vec<(&str, String)> = filters.iter().cloned().chain(part).collect();
        let page = client.get(&["engagements"], &query).await?;
        CursorEnd { next_cursor: cursor, .. } = client.part(&page, "pagination")?;
        found.extend(client.part::<Vec<_>>(&page, "items")?);
        if cursor.is_none() {
            break;
        }
    }
    Ok(found)
}
