//! `turnstone agent apply`: register agents from files.

use super::FilesArgs;
use super::problem::FoundProblem;
use crate::commands::{Session, several};
use crate::output::{Format, Output, table, text};
use serde_json::Value;
use std::io;
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
            Ok(answer) => show(&name, &answer, &output)?,
            Err(failure) => {
                let details = failure.refusal.as_ref().map(|refusal| &refusal.details["problems"]);
                let problems = FoundProblem::of_list(&name, details.unwrap_or(&Value::Null));
                problems.iter().try_for_each(|problem| problem.print(&output))?;
                outcome.failed(&name, failure)?;
            }
        }
    }
    outcome.finish("files were refused")
}

fn show(file: &str, answer: &Value, output: &Output) -> io::Result<()> {
    let agent = text::line(&table::plain(&answer["name"]));
    match output.format {
        Format::Json => output.ndjson(answer),
        Format::Ids => output.line(&agent),
        Format::Table => {
            FoundProblem::of_list(file, &answer["warnings"])
                .iter()
                .try_for_each(|problem| problem.print(output))?;
            let what = if answer["changed"] == false {
                "is registered already and unchanged"
            } else {
                "is registered"
            };
            output.line(&format!("{file}: agent {agent} {what}"))
        }
    }
}
