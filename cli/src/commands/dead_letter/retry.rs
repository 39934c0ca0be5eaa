//! `turnstone dead-letter retry`: runs dead letters again.

use super::LettersArgs;
use crate::client::{Client, raw_part};
use crate::commands::Session;
use crate::commands::bulk::{Bulk, JobsArgs};
use serde_json::json;
use std::process::ExitCode;

const RETRY: Bulk =
    Bulk { verb: "retry", done: "available again", path: &["ojs", "v1", "dead-letter", "retry"] };

/// Retries the named dead letters, or all that the filter finds.
///
/// # Errors
/// The ids cannot be read, the request fails, or one was refused.
pub async fn run(args: LettersArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let one = |client: Client, id: String| async move {
        let retried = client.post(&["ojs", "v1", "dead-letter", &id, "retry"], &json!({})).await;
        retried.map(|answer| raw_part(answer, "job"))
    };
    JobsArgs::from(args).run(session, RETRY, one).await
}
