//! `turnstone agent apply`: register agents from files.

use super::FilesArgs;
use super::problem::FoundProblem;
use crate::commands::{Session, several};
use crate::output::{Format, table, text};
use serde_json::Value;
use std::process::ExitCode;

/// Sends the files one after the other. One that is refused does not keep the others out.
///
/// # Errors
/// A file cannot be read, the server cannot be asked, or an agent was refused.
pub async fn run(args: &FilesArgs, session: &Session) -> anyhow::Result<ExitCode> {
    // All are read first, so that a name mistyped at the end does not leave half of them applied.
    let documents = args.files.iter().map(|file| super::read(file)).collect::<Result<Vec<_>, _>>()?;
    let client = session.client()?;
    let output = session.output;
    let mut outcome = several::Outcome::new(output);
    for (name, source) in documents {
        match client.post_text(&["agents"], "application/yaml", source).await {
            Ok(answer) => match output.format {
                Format::Json => output.ndjson(&answer)?,
                Format::Ids => output.line(&agent_name(&answer))?,
                Format::Table => {
                    output.line(&format!("{name}: agent {} is registered", agent_name(&answer)))?
                }
            },
            Err(mut failure) => {
                let problems = FoundProblem::of_details(&name, &failure.details);
                problems.iter().try_for_each(|problem| problem.print(&output))?;
                failure.details = Value::Null;
                outcome.failed(&name, failure)?;
            }
        }
    }
    outcome.finish("files were refused")
}

fn agent_name(answer: &Value) -> String {
    let agent = if answer["agent"].is_object() { &answer["agent"] } else { answer };
    text::line(&table::plain(&agent["name"]))
}
