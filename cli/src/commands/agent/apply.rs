//! `turnstone agent apply`: register agents from files.

use super::ApplyArgs;
use super::problem::FoundProblem;
use crate::commands::{Session, several};
use crate::failure::Failure;
use crate::output::{Format, Output, table, text};
use serde_json::Value;
use std::io;
use std::process::ExitCode;

/// Sends the files one after the other. A refused file does not keep the others out.
///
/// # Errors
/// A file cannot be read, the request fails, or an agent was refused.
pub async fn run(args: &ApplyArgs, session: &Session) -> anyhow::Result<ExitCode> {
    // All are read first, so that a mistyped name at the end does not leave half of them applied.
    let files = args.files.expanded().into_iter().collect::<Result<Vec<_>, _>>()?;
    let documents = files.iter().map(|file| super::read(file)).collect::<Result<Vec<_>, _>>()?;
    let query: &[(&str, String)] =
        if args.allow_unresolved { &[("allow_unresolved", "1".to_owned())] } else { &[] };
    let client = session.client()?;
    let output = session.output;
    let mut outcome = several::Outcome::new(output);
    let mut left = documents;
    loop {
        let mut refused = Vec::new();
        let before = left.len();
        for (name, source) in left {
            match client.post_text((&["agents"], query), "application/yaml", source.clone()).await {
                Ok(answer) => show(&name, &answer, &output)?,
                Err(failure) => refused.push((name, source, failure)),
            }
        }
        // An agent may name one that comes after it: refused files are sent again as long as that registers one more.
        if refused.is_empty() || refused.len() == before || before == 1 {
            for (name, _, failure) in refused {
                tell(&name, failure, &mut outcome, &output)?;
            }
            break;
        }
        left = refused.into_iter().map(|(name, source, _)| (name, source)).collect();
    }
    outcome.finish("files were refused")
}

/// Prints why a document was refused: each problem once.
fn tell(name: &str, failure: Failure, outcome: &mut several::Outcome, output: &Output) -> anyhow::Result<()> {
    let details = failure.refusal.as_ref().map(|refusal| &refusal.details["problems"]);
    let problems = FoundProblem::of_list(name, details.unwrap_or(&Value::Null));
    problems.iter().try_for_each(|problem| problem.print(output))?;
    let errors = problems.iter().filter(|problem| problem.severity == "error").count();
    let message = match errors {
        0 => failure.message.clone(),
        1 => "not registered, because of 1 error".to_owned(),
        count => format!("not registered, because of {count} errors"),
    };
    Ok(outcome.failed(name, Failure { message, ..failure })?)
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
