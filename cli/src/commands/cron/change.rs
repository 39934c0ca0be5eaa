//! `turnstone cron pause`, `resume`, `trigger` and `delete`.

use super::CRONS;
use crate::client::Client;
use crate::commands::Session;
use crate::commands::chosen::{Chosen, Deed};
use serde_json::json;
use std::process::ExitCode;
use turnstone_api::answers::CronReply;
use turnstone_ojs::JobReply;

/// Pauses or resumes entries.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn enable(chosen: Chosen, enabled: bool, session: &Session) -> anyhow::Result<ExitCode> {
    let (verb, done) = if enabled { ("resume", "resumed") } else { ("pause", "paused") };
    let act = move |client: Client, name: String| async move {
        let changed = client.patch(&["ojs", "v1", "cron", &name], &json!({ "enabled": enabled })).await;
        changed.map(|CronReply { cron, .. }| cron)
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
        triggered.map(|JobReply { job, .. }| job)
    };
    chosen.each(session, CRONS, Deed { verb: "trigger", done: "triggered" }, act).await
}

/// Deletes entries.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn delete(chosen: Chosen, session: &Session) -> anyhow::Result<ExitCode> {
    let act = |client: Client, name: String| async move {
        client.delete(&["ojs", "v1", "cron", &name]).await.map(|CronReply { cron, .. }| cron)
    };
    chosen.each(session, CRONS, Deed { verb: "delete", done: "deleted" }, act).await
}
