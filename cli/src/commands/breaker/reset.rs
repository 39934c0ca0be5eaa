//! `turnstone breaker reset`.

use crate::commands::{Session, several};
use crate::output::{Format, text};
use serde_json::Value;
use std::process::ExitCode;

/// Closes breakers one after the other. A closed or unknown breaker does not keep the others.
///
/// # Errors
/// The request fails.
pub async fn run(names: Vec<String>, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let mut outcome = several::Outcome::new(output);
    for name in several::ids(names)? {
        match client.delete::<Value>(&["breakers", &name]).await {
            Ok(answer) => match output.format {
                Format::Json => output.ndjson(&answer)?,
                Format::Ids => output.line(&text::line(&name))?,
                Format::Table => output.line(&format!("{} is closed", text::line(&name)))?,
            },
            Err(failure) => outcome.failed(&name, failure)?,
        }
    }
    outcome.finish("breakers were not closed")
}
