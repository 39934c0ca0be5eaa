//! `turnstone audit list`.

use super::ListArgs;
use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use serde_json::Value;
use std::process::ExitCode;
use turnstone_domain::Timestamp;

const COLUMNS: &[Column] = &[
    column("SEQ", |row| plain(&row["seq"])),
    column("AT", |row| Timestamp(row["at"].as_i64().unwrap_or_default()).to_rfc3339()),
    column("PRINCIPAL", |row| plain(&row["principal"])),
    column("TENANT", |row| plain(&row["tenant"])),
    column("ACTION", |row| plain(&row["action"])),
    column("TARGET", |row| plain(&row["target"])),
    column("OUTCOME", |row| plain(&row["outcome"])),
    column("FROM", |row| plain(&row["source"])),
];

pub(super) async fn run(args: ListArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let mut answer = session.client()?.get(&["audit"], &[("limit", args.limit.to_string())]).await?;
    let entries = match answer["entries"].take() {
        Value::Array(entries) => entries,
        _ => Vec::new(),
    };
    session.output.list(&entries, "hash", COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
