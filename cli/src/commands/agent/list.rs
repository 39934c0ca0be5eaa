//! `turnstone agent list`: the registered agents.

use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use std::process::ExitCode;
use turnstone_api::answers::ListedAgent;

const COLUMNS: &[Column<ListedAgent>] = &[
    column("NAME", |agent| plain(&agent.name)),
    column("FORMAT", |agent| plain(&agent.format)),
    column("TENANTS", |agent| match &agent.tenants {
        Some(names) => names.join(", "),
        None => "all".to_owned(),
    }),
    column("DESCRIPTION", |agent| plain(&agent.description)),
    column("UPDATED", |agent| time(&agent.updated_at)),
];

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let agents: Vec<_> = session.client()?.get(&["agents"], &[]).await?;
    session.output.list(&agents, |agent| &agent.name, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
