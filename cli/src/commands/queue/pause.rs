//! `turnstone queue pause` and `resume`.

use crate::client::Client;
use crate::commands::Session;
use crate::commands::chosen::{Chosen, Deed};
use serde_json::json;
use std::process::ExitCode;
use turnstone_api::answers::PausedQueue;

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
        client.post(&path, &json!({})).await.map(|PausedQueue { queue, .. }| queue)
    };
    chosen.each(session, super::QUEUES, deed, act).await
}
