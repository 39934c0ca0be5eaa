//! `turnstone job cancel`: end jobs.

use crate::client::{Client, raw_part};
use crate::commands::Session;
use crate::commands::bulk::{Bulk, JobsArgs};
use std::process::ExitCode;

const CANCEL: Bulk =
    Bulk { verb: "cancel", done: "cancelled", path: &["ojs", "v1", "admin", "jobs", "bulk", "cancel"] };

/// Cancels jobs. One that cannot be cancelled does not keep the others from it.
///
/// # Errors
/// The ids cannot be read, the request fails, or a job could not be cancelled.
pub async fn run(args: JobsArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let one = |client: Client, id: String| async move {
        client.delete(&["ojs", "v1", "jobs", &id]).await.map(|answer| raw_part(answer, "job"))
    };
    args.run(session, CANCEL, one).await
}
