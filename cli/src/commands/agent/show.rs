//! `turnstone agent show`: a registered document.

use crate::commands::Session;
use crate::failure::Failure;
use crate::output::{Format, text};
use serde_json::json;
use std::process::ExitCode;

/// Prints the document as it was written, or an Agent Spec document as a tree; `-o json` has the document as one text.
///
/// # Errors
/// The request fails, or there is no such agent.
pub async fn run(name: &str, tree: bool, session: &Session) -> anyhow::Result<ExitCode> {
    if tree {
        let query = [("format", "agent-spec".to_owned())];
        let document = session.client()?.get(&["agents", name], &query).await?.to_string();
        let lines = super::tree::lines(&document).map_err(Failure::usage)?;
        for line in lines {
            session.output.line(&text::line(&line))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let document = session.client()?.get_text(&["agents", name]).await?;
    let output = &session.output;
    match output.format {
        Format::Json => output.json(&json!({"name": name, "document": document}))?,
        Format::Ids => output.line(&text::line(name))?,
        Format::Table => output.line(&text::block(document.trim_end()))?,
    }
    Ok(ExitCode::SUCCESS)
}
