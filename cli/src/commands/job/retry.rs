//! `turnstone job retry`: let discarded or cancelled jobs run again.

use crate::commands::Session;
use crate::commands::bulk::{Bulk, JobsArgs};
use serde_json::json;
use std::process::ExitCode;

const RETRY: Bulk =
    Bulk { verb: "retry", done: "available again", path: &["ojs", "v1", "admin", "jobs", "bulk", "retry"] };

/// Makes jobs available again, with all their attempts.
///
/// # Errors
/// The ids cannot be read, the server cannot be asked, or a job cannot be retried.
pub async fn run(args: JobsArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let one = |client: crate::client::Client, id: String| async move {
        client.post(&["ojs", "v1", "admin", "jobs", &id, "retry"], &json!({})).await
    };
    args.run(session, RETRY, one).await
}
