//! `turnstone engagement send`: a further input of an engagement.

use crate::commands::Session;
use crate::output::text;
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;

/// `turnstone engagement send`.
#[derive(Clone, Debug, Args)]
pub struct SendArgs {
    /// The engagement's id, or its first characters
    pub id: String,
    /// The text
    pub text: String,
    /// Continue an engagement that has ended
    #[arg(long)]
    pub reopen: bool,
}

/// Sends it.
///
/// # Errors
/// The server refused: there is no such engagement, it has ended, or it waits for a review.
pub async fn run(args: SendArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let query = if args.reopen { vec![("reopen", "true".to_owned())] } else { Vec::new() };
    let taken: Value =
        client.post_with(&["engagements", &args.id], &query, &json!({"input": args.text})).await?;
    output.answer(&taken, &args.id, &text::line(&format!("{} takes it", args.id)))?;
    Ok(ExitCode::SUCCESS)
}
