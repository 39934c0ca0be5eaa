//! `turnstone breaker list`.

use crate::commands::Session;
use crate::output::table::{Column, column, plain};
use std::process::ExitCode;
use turnstone_api::answers::Breaker;

const COLUMNS: &[Column<Breaker>] = &[
    column("BREAKER", |breaker| plain(&breaker.name)),
    column("STATE", |breaker| plain(&breaker.state)),
    column("FAILURES", |breaker| plain(&breaker.failures)),
    column("OPEN UNTIL", |breaker| plain(&breaker.open_until)),
];

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let breakers: Vec<_> = session.client()?.member(&["breakers"], &[], "breakers").await?;
    session.output.list(&breakers, |breaker| &breaker.name, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
