//! `turnstone job retry`: runs discarded or cancelled jobs again.

use crate::client::{Client, raw_part};
use crate::commands::Session;
use crate::commands::bulk::{Bulk, JobsArgs};
use crate::failure::Failure;
use serde_json::json;
use std::process::ExitCode;

const RETRY: Bulk =
    Bulk { verb: "retry", done: "available again", path: &["ojs", "v1", "admin", "jobs", "bulk", "retry"] };

/// Makes jobs available again, with all their attempts.
///
/// # Errors
/// The ids cannot be read, the request fails, or a job cannot be retried.
pub async fn run(args: JobsArgs, session: &Session) -> anyhow::Result<ExitCode> {
    if let Some(state) = args.state.as_deref().filter(|state| !["discarded", "retryable"].contains(state)) {
        let failure = Failure::usage(format!("{state} jobs cannot be retried"));
        return Err(failure.hint("discarded and retryable ones can").into());
    }
    let one = |client: Client, id: String| async move {
        let path = ["ojs", "v1", "admin", "jobs", &id, "retry"];
        client.post(&path, &json!({})).await.map(|answer| raw_part(answer, "job"))
    };
    args.run(session, RETRY, one).await
}
