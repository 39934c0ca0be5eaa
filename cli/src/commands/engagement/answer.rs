//! `turnstone engagement answer`: what the user says to the question that an engagement waits with.

use crate::commands::Session;
use crate::output::{Format, text};
use clap::Args;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// `turnstone engagement answer`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: turnstone engagement answer ID city=Oslo days=3")]
pub struct AnswerArgs {
    /// The engagement's id
    pub id: String,
    /// A value for each key that it asks for; `turnstone -o json engagement show ID` lists them
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = pair)]
    pub answers: Vec<(String, String)>,
}

fn pair(word: &str) -> Result<(String, String), String> {
    let (key, value) = word.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Answers it.
///
/// # Errors
/// The server refused: a key has no value, or the engagement does not wait.
pub async fn run(args: AnswerArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let answers: Map<String, Value> =
        args.answers.into_iter().map(|(key, value)| (key, value.into())).collect();
    let taken = client.post(&["engagements", &args.id, "answer"], &json!({"answers": answers})).await?;
    match output.format {
        Format::Json => output.json(&taken)?,
        Format::Ids => output.line(&text::line(&args.id))?,
        Format::Table => output.line(&text::line(&format!("{} goes on", args.id)))?,
    }
    Ok(ExitCode::SUCCESS)
}
