//! `turnstone agent lint`: every problem of agent files, without a server.

use super::FilesArgs;
use super::problem::FoundProblem;
use crate::commands::Session;
use crate::failure::Exit;
use crate::output::Format;
use std::process::ExitCode;

/// Reads the files and prints what is wrong with them. Which tools there are only a server knows, so their names are
/// not checked here.
///
/// # Errors
/// A file cannot be read, or standard output cannot be written.
pub fn run(args: &FilesArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let output = &session.output;
    let mut found = Vec::new();
    for file in &args.files {
        let (name, source) = super::read(file)?;
        let problems = match turnstone_specs::read(&source, None) {
            Ok((_, warnings)) => warnings,
            Err(problems) => problems,
        };
        found.extend(problems.into_iter().map(|problem| FoundProblem::of(&name, problem)));
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
