//! `turnstone engagement answer`: the user's answer to the question that an engagement waits with.

use crate::client::Received;
use crate::commands::Session;
use crate::output::text;
use clap::Args;
use serde_json::{Map, Value, json};
use std::process::ExitCode;
use turnstone_api::answers::AnswerTaken;

/// `turnstone engagement answer`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: turnstone engagement answer ID city=Oslo days=3")]
pub struct AnswerArgs {
    /// The engagement's id, or its first characters
    pub id: String,
    /// A value for each requested key, which `turnstone -o json engagement show ID` lists; a value that is JSON is
    /// taken as JSON
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = pair)]
    pub answers: Vec<(String, String)>,
    /// The question, as `awaiting.call_id` names it; the answer then applies to no other question
    #[arg(long, value_name = "CALL_ID")]
    pub call: Option<String>,
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
        args.answers.into_iter().map(|(key, value)| (key, read(&value))).collect();
    let said = json!({"answers": answers, "call_id": args.call});
    let taken: Received<AnswerTaken> = client.post(&["engagements", &args.id, "answer"], &said).await?;
    let what = if taken.repeated { "was answered so before" } else { "resumes" };
    output.answer(&taken, &args.id, &text::line(&format!("{} {what}", args.id)))?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a value as JSON, or else as a text.
fn read(value: &str) -> Value {
    serde_json::from_str(value).unwrap_or_else(|_| value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A question for a number or for yes or no can be answered as such, as `job push --set` and the example client do.
    #[test]
    fn what_is_json_is_taken_as_such() {
        assert_eq!(read("3"), json!(3));
        assert_eq!(read("true"), json!(true));
        assert_eq!(read("Oslo"), json!("Oslo"));
        assert_eq!(read("\"3\""), json!("3"));
    }
}
