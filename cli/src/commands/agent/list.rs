//! `turnstone agent list`: the registered agents.

use crate::client::elements;
use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use std::process::ExitCode;

const COLUMNS: &[Column] = &[
    column("NAME", |agent| plain(&agent["name"])),
    column("FORMAT", |agent| plain(&agent["format"])),
    column("DESCRIPTION", |agent| plain(&agent["description"])),
    column("UPDATED", |agent| time(&agent["updated_at"])),
];

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let agents = elements(session.client()?.get(&["agents"], &[]).await?, "agents");
    session.output.list(&agents, "name", COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
