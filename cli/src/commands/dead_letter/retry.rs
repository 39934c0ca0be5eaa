//! `turnstone dead-letter retry`: let dead letters run again.

use super::LettersArgs;
use crate::client::Client;
use crate::commands::Session;
use crate::commands::bulk::{Bulk, JobsArgs};
use std::process::ExitCode;

const RETRY: Bulk =
    Bulk { verb: "retry", done: "available again", path: &["ojs", "v1", "dead-letter", "retry"] };

/// Does it to those named, or to all that the filter finds.
///
/// # Errors
/// The ids cannot be read, the server cannot be asked, or one was refused.
pub async fn run(args: LettersArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let one = |client: Client, id: String| async move {
        client.post(&["ojs", "v1", "dead-letter", &id, "retry"], &super::nothing()).await
    };
    JobsArgs::from(args).run(session, RETRY, one).await
}
