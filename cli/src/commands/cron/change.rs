//! `turnstone cron pause`, `resume`, `trigger` and `delete`.

use super::CRONS;
use crate::client::{Client, raw_part};
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
        let changed = client.patch(&["ojs", "v1", "cron", &name], &json!({ "enabled": enabled })).await;
        changed.map(|answer| raw_part(answer, "cron"))
    };
    chosen.each(session, CRONS, Deed { verb, done }, act).await
}

/// Triggers entries now.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn trigger(chosen: Chosen, session: &Session) -> anyhow::Result<ExitCode> {
    let act = |client: Client, name: String| async move {
        let triggered = client.post(&["ojs", "v1", "cron", &name, "trigger"], &json!({})).await;
        triggered.map(|answer| raw_part(answer, "job"))
    };
    chosen.each(session, CRONS, Deed { verb: "trigger", done: "triggered" }, act).await
}

/// Deletes entries.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn delete(chosen: Chosen, session: &Session) -> anyhow::Result<ExitCode> {
    let act = |client: Client, name: String| async move {
        client.delete(&["ojs", "v1", "cron", &name]).await.map(|answer| raw_part(answer, "cron"))
    };
    chosen.each(session, CRONS, Deed { verb: "delete", done: "deleted" }, act).await
}
