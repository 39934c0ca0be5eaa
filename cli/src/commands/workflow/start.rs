//! `turnstone workflow start`: chains, groups, batches and graphs from a file.

use crate::client::Received;
use crate::commands::Session;
use crate::failure::Failure;
use crate::output::{Format, text};
use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use std::io::{self, Read as _};
use std::process::ExitCode;
use turnstone_api::answers::WorkflowBody;

/// `turnstone workflow start`.
#[derive(Clone, Debug, Args)]
pub struct StartArgs {
    /// A JSON file such as {"type": "chain", "steps": [{"type": "a", "args": []}]}; `-` is standard input
    pub file: String,
    /// Follow its progress until it ends: exit code 0 when it completed, 1 when it did not
    #[arg(long, short)]
    pub watch: bool,
}

/// Sends it and prints its id.
///
/// # Errors
/// The file cannot be read, the request fails, or the server refuses it.
pub async fn run(args: &StartArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let file = args.file.as_str();
    let body = if file == "-" {
        let mut body = String::new();
        io::stdin().lock().read_to_string(&mut body).context("standard input cannot be read")?;
        body
    } else {
        std::fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("{file} cannot be read: {error}")))?
    };
    if let Err(error) = serde_json::from_str::<Value>(&body) {
        return Err(Failure::usage(format!("{file} is not JSON: {error}")).into());
    }
    let (client, output) = (session.client()?, session.output);
    let answer = client.post_text((super::WORKFLOWS.path, &[]), "application/json", body).await?;
    let workflow: Received<WorkflowBody> = client.part(&answer, "workflow")?;
    let id = &workflow.id;
    if args.watch {
        if output.format == Format::Table {
            output.line(&text::line(id))?;
        }
        return super::watch::run(id, &client, session).await;
    }
    match output.format {
        Format::Json => output.json(&workflow)?,
        Format::Ids | Format::Table => output.line(&text::line(id))?,
    }
    Ok(ExitCode::SUCCESS)
}
