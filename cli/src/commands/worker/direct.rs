//! `turnstone worker drain` and `quiet`: directives that workers receive with their next heartbeat.

use crate::client::Client;
use crate::commands::Session;
use crate::commands::chosen::{Chosen, Deed, Listed, Reading};
use serde_json::{Value, json};
use std::process::ExitCode;

const WORKERS: Listed =
    Listed { path: &["ojs", "v1", "admin", "workers"], list: "items", name: "id", read: Reading::Pages };

/// Directs workers to take no further jobs.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn quiet(chosen: Chosen, session: &Session) -> anyhow::Result<ExitCode> {
    let act = |client: Client, id: String| async move {
        client.post::<Value>(&["ojs", "v1", "admin", "workers", &id, "quiet"], &json!({})).await
    };
    chosen.each(session, WORKERS, Deed { verb: "quiet", done: "takes no further jobs" }, act).await
}

/// Directs workers to drain and end.
///
/// # Errors
/// The request fails, or the server refuses it.
pub async fn drain(chosen: Chosen, session: &Session) -> anyhow::Result<ExitCode> {
    let act = |client: Client, id: String| async move {
        client.delete::<Value>(&["ojs", "v1", "admin", "workers", &id]).await
    };
    chosen.each(session, WORKERS, Deed { verb: "drain", done: "drains" }, act).await
}
