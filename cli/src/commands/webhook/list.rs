//! `turnstone webhook list`: subscriptions.

use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use serde_json::Value;
use std::process::ExitCode;

const COLUMNS: &[Column] = &[
    column("ID", |webhook| plain(&webhook["id"])),
    column("URL", |webhook| plain(&webhook["url"])),
    column("EVENTS", events),
    column(
        "STATE",
        |webhook| if webhook["active"] == false { "paused".to_owned() } else { "active".to_owned() },
    ),
    column("SINCE", |webhook| time(&webhook["created_at"])),
];

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let listed = super::SUBSCRIPTIONS;
    let (webhooks, _) = session.client()?.pages(listed.path, &[], listed.list, usize::MAX).await?;
    session.output.list(&webhooks, "id", COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}

fn events(webhook: &Value) -> String {
    let names = webhook["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}
