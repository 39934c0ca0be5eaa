//! `turnstone agent show`: a registered document.

use crate::commands::Session;
use crate::output::{Format, text};
use serde_json::json;
use std::process::ExitCode;

/// Prints the document as it was written; `-o json` has it as one text.
///
/// # Errors
/// The request fails, or there is no such agent.
pub async fn run(name: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let document = session.client()?.get_text(&["agents", name]).await?;
    let output = &session.output;
    match output.format {
        Format::Json => output.json(&json!({"name": name, "document": document}))?,
        Format::Ids => output.line(&text::line(name))?,
        Format::Table => output.line(&text::block(document.trim_end()))?,
    }
    Ok(ExitCode::SUCCESS)
}
