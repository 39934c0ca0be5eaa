//! `turnstone breaker reset`.

use crate::commands::Session;
use crate::output::{Format, text};
use std::process::ExitCode;

/// Closes breakers.
///
/// # Errors
/// One of them is well or does not exist, or the server cannot be asked.
pub async fn run(names: &[String], session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, &session.output);
    for name in names {
        let answer = client.delete(&["breakers", name]).await?;
        match output.format {
            Format::Json => output.json(&answer)?,
            Format::Ids => output.line(&text::line(name))?,
            Format::Table => output.line(&format!("{} is closed", text::line(name)))?,
        }
    }
    Ok(ExitCode::SUCCESS)
}
