//! `turnstone queue pause` and `resume`.

use crate::client::{Client, raw_part};
use crate::commands::Session;
use crate::commands::chosen::{Chosen, Deed};
use serde_json::json;
use std::process::ExitCode;

/// Pauses or resumes queues.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn run(
    chosen: Chosen,
    verb: &'static str,
    done: &'static str,
    session: &Session,
) -> anyhow::Result<ExitCode> {
    let deed = Deed { verb, done };
    let act = |client: Client, name: String| async move {
        let path = ["ojs", "v1", "admin", "queues", &name, verb];
        client.post(&path, &json!({})).await.map(|answer| raw_part(answer, "queue"))
    };
    chosen.each(session, super::QUEUES, deed, act).await
}
