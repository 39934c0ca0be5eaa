//! `turnstone breaker list`.

use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use serde_json::Value;
use std::process::ExitCode;

const COLUMNS: &[Column] = &[
    column("BREAKER", |breaker| plain(&breaker["name"])),
    column("STATE", |breaker| plain(&breaker["state"])),
    column("FAILURES", |breaker| plain(&breaker["failures"])),
    column("OPEN UNTIL", |breaker| plain(&breaker["open_until"])),
];

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let mut answer = session.client()?.get(&["breakers"], &[]).await?;
    let breakers = match answer["breakers"].take() {
        Value::Array(breakers) => breakers,
        _ => Vec::new(),
    };
    session.output.list(&breakers, "name", COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
