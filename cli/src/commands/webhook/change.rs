//! `turnstone webhook test`, `pause`, `resume`, `rotate-secret` and `delete`.

use super::SUBSCRIPTIONS;
use crate::client::{Client, Received, raw_part};
use crate::commands::Session;
use crate::commands::chosen::{Chosen, Deed};
use crate::output::table::plain;
use crate::output::text;
use serde_json::{Value, json};
use std::process::ExitCode;
use turnstone_ojs::SubscriptionBody;

fn path<'a>(id: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [SUBSCRIPTIONS.path, &[id], rest].concat()
}

/// Sends a test event.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn test(chosen: Chosen, session: &Session) -> anyhow::Result<ExitCode> {
    let act = |client: Client, id: String| async move {
        let sent = client.post(&path(&id, &["test"]), &json!({})).await;
        sent.map(|answer| raw_part(answer, "delivery"))
    };
    chosen.each(session, SUBSCRIPTIONS, Deed { verb: "test", done: "is sent a test event" }, act).await
}

/// Activates or deactivates subscriptions.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn activate(chosen: Chosen, active: bool, session: &Session) -> anyhow::Result<ExitCode> {
    let (verb, done) = if active { ("resume", "resumed") } else { ("pause", "paused") };
    let act = move |client: Client, id: String| async move {
        let changed = client.patch(&path(&id, &[]), &json!({ "active": active })).await;
        changed.map(|answer| raw_part(answer, "subscription"))
    };
    chosen.each(session, SUBSCRIPTIONS, Deed { verb, done }, act).await
}

/// Deletes subscriptions.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn delete(chosen: Chosen, session: &Session) -> anyhow::Result<ExitCode> {
    let act = |client: Client, id: String| async move { client.delete::<Value>(&path(&id, &[])).await };
    chosen.each(session, SUBSCRIPTIONS, Deed { verb: "delete", done: "deleted" }, act).await
}

/// Replaces the secret and prints the new one.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn rotate(id: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let answer = client.post(&path(id, &["rotate-secret"]), &json!({})).await?;
    let answer: Received<SubscriptionBody> = client.part(&answer, "subscription")?;
    output.answer(&answer, id, &text::line(&plain(&answer.secret)))?;
    Ok(ExitCode::SUCCESS)
}
