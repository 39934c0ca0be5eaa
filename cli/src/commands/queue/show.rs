//! `turnstone queue show`: what is in a queue.

use crate::commands::Session;
use crate::output::table::plain;
use crate::output::{Format, text};
use serde_json::Value;
use std::process::ExitCode;

/// Prints the counts of a queue.
///
/// # Errors
/// The server cannot be asked.
pub async fn run(name: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let answer = client.get(&["ojs", "v1", "queues", name, "stats"], &[]).await?;
    match output.format {
        Format::Json => output.json(&answer)?,
        Format::Ids => output.line(&text::line(name))?,
        Format::Table => {
            let fields = answer["queue"].as_object();
            for (field, value) in
                fields.into_iter().flatten().filter(|(_, value)| !matches!(value, Value::Null))
            {
                output.line(&format!("{field:<12} {}", text::line(&plain(value))))?;
            }
            output.line(&format!("{:<12} {}", "depth", plain(&answer["stats"]["depth"])))?;
            let bound = plain(&answer["stats"]["max_depth"]);
            output.line(&format!(
                "{:<12} {}",
                "bound",
                if bound.is_empty() { "none".to_owned() } else { bound }
            ))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
