//! `turnstone cron pause`, `resume`, `trigger` and `delete`.

use super::CRONS;
use crate::client::Client;
use crate::commands::Session;
use crate::commands::chosen::{Chosen, Deed};
use serde_json::json;
use std::process::ExitCode;

/// Pauses or resumes entries.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn enable(chosen: Chosen, enabled: bool, session: &Session) -> anyhow::Result<ExitCode> {
    let (verb, done) = if enabled { ("resume", "resumed") } else { ("pause", "paused") };
    let act = move |client: Client, name: String| async move {
        client.patch(&["ojs", "v1", "cron", &name], &json!({ "enabled": enabled })).await
    };
    chosen.each(session, CRONS, Deed { verb, done, inside: "cron" }, act).await
}

/// Triggers entries now.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn trigger(chosen: Chosen, session: &Session) -> anyhow::Result<ExitCode> {
    let act = |client: Client, name: String| async move {
        client.post(&["ojs", "v1", "cron", &name, "trigger"], &json!({})).await
    };
    chosen.each(session, CRONS, Deed { verb: "trigger", done: "triggered", inside: "job" }, act).await
}

/// Deletes entries.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn delete(chosen: Chosen, session: &Session) -> anyhow::Result<ExitCode> {
    let act =
        |client: Client, name: String| async move { client.delete(&["ojs", "v1", "cron", &name]).await };
    chosen.each(session, CRONS, Deed { verb: "delete", done: "deleted", inside: "cron" }, act).await
}
