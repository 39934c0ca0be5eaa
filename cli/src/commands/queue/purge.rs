//! `turnstone queue purge`: delete ended jobs of a queue.

use crate::client::Received;
use crate::commands::Session;
use crate::output::text;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;
use std::process::ExitCode;
use turnstone_api::answers::BulkReply;

/// `turnstone queue purge`.
#[derive(Clone, Debug, Args)]
pub struct PurgeArgs {
    /// The queue
    pub name: String,
    /// Jobs that ended in this state
    #[arg(long, default_value = "completed", value_parser = PossibleValuesParser::new(["completed", "cancelled", "discarded"]))]
    pub state: String,
    /// Only print their number
    #[arg(long)]
    pub dry_run: bool,
}

/// Deletes them.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn run(args: &PurgeArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let filter = json!({ "queue": args.name, "state": args.state });
    let body = json!({ "filter": filter, "confirm": true, "dry_run": args.dry_run });
    let answer: Received<BulkReply> =
        client.post(&["ojs", "v1", "admin", "jobs", "bulk", "delete"], &body).await?;
    let deleted = u64::try_from(answer.succeeded).unwrap_or(u64::MAX);
    let (word, jobs) = if args.dry_run { ("would be deleted", answer.matched) } else { ("deleted", deleted) };
    let jobs = text::counted(i64::try_from(jobs).unwrap_or(i64::MAX), &format!("{} job", args.state));
    output.answer(&answer, &args.name, &format!("{jobs} {word}"))?;
    Ok(ExitCode::SUCCESS)
}
