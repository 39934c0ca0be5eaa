//! `turnstone audit list`.

use super::ListArgs;
use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use std::process::ExitCode;
use turnstone_domain::audit::AuditEntry;

const COLUMNS: &[Column<AuditEntry>] = &[
    column("SEQ", |row| plain(&row.seq)),
    column("AT", |row| row.at.to_rfc3339()),
    column("PRINCIPAL", |row| plain(&row.principal)),
    column("TENANT", |row| plain(&row.tenant)),
    column("ACTION", |row| plain(&row.action)),
    column("TARGET", |row| plain(&row.target)),
    column("OUTCOME", |row| plain(&row.outcome)),
    column("FROM", |row| plain(&row.source)),
];

pub(super) async fn run(args: ListArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let query = [("limit", args.limit.to_string())];
    let entries: Vec<_> = session.client()?.member(&["audit"], &query, "entries").await?;
    session.output.list(&entries, |row| &row.hash, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
