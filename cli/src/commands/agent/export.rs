//! `turnstone agent export`: an agent in the canonical form of a format.

use crate::commands::Session;
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::process::ExitCode;

/// `turnstone agent export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// Its name
    name: String,
    /// The format of the document
    #[arg(long, value_enum)]
    format: Form,
}

/// A format with a canonical form.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// Agent Spec, as JSON
    AgentSpec,
}

/// Prints the document. Another Agent Spec runtime loads it with a registry of the secrets.
///
/// # Errors
/// The request fails, there is no such agent, or it has no document of that format.
pub async fn run(args: &ExportArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let Form::AgentSpec = args.format;
    let query = [("format", "agent-spec".to_owned())];
    let document: Value = session.client()?.get(&["agents", &args.name], &query).await?;
    session.output.document(&serde_json::to_string_pretty(&document)?)?;
    Ok(ExitCode::SUCCESS)
}
