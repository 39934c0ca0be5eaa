//! `turnstone agent lint`: every problem of agent files, without a server.

use super::LintArgs;
use super::problem::FoundProblem;
use super::reach::Reach;
use crate::commands::Session;
use crate::failure::Exit;
use crate::output::Format;
use std::process::ExitCode;

/// Reads the files and prints what is wrong with them. Which tools there are only a server knows, so their names are
/// not checked here.
///
/// # Errors
/// A file cannot be read, the configuration is wrong where it is needed, or standard output cannot be written.
pub async fn run(args: &LintArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let output = &session.output;
    let reach = match args.reach {
        true => Some(Reach::with(session.config(Vec::new())?.config)?),
        false => None,
    };
    let args = &args.files;
    let mut found = Vec::new();
    for file in &args.files {
        let (name, source) = super::read(file)?;
        let (agent, problems) = match turnstone_specs::read(&source, None) {
            Ok((agent, warnings)) => (Some(agent), warnings),
            Err(problems) => (None, problems),
        };
        found.extend(problems.into_iter().map(|problem| FoundProblem::of(&name, problem)));
        if let Some((reach, agent)) = reach.as_ref().zip(agent) {
            let missing = reach.missing(&agent).await;
            found.extend(missing.into_iter().map(|missing| FoundProblem::unreached(&name, missing)));
        }
    }
    if let Some(reach) = reach {
        reach.close().await;
    }
    let errors = found.iter().filter(|problem| problem.severity == "error").count();
    match output.format {
        Format::Json => output.json(&found)?,
        Format::Table | Format::Ids => found.iter().try_for_each(|problem| problem.print(output))?,
    }
    let files = args.files.len();
    output.remark(&format!(
        "{files} {} checked, {errors} errors, {} warnings",
        if files == 1 { "file" } else { "files" },
        found.len() - errors
    ));
    Ok(if errors == 0 { Exit::Ok.into() } else { Exit::Failed.into() })
}
