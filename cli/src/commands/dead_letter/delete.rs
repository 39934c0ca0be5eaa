//! `turnstone dead-letter delete`: delete dead letters.

use super::LettersArgs;
use crate::client::Client;
use crate::commands::Session;
use crate::commands::bulk::{Bulk, JobsArgs};
use serde_json::Value;
use std::process::ExitCode;

const DELETE: Bulk = Bulk { verb: "delete", done: "deleted", path: &["ojs", "v1", "dead-letter", "purge"] };

/// Deletes the named dead letters, or all that the filter finds.
///
/// # Errors
/// The ids cannot be read, the request fails, or one was refused.
pub async fn run(args: LettersArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let one = |client: Client, id: String| async move {
        client.delete::<Value>(&["ojs", "v1", "dead-letter", &id]).await
    };
    JobsArgs::from(args).run(session, DELETE, one).await
}
