//! `turnstone agent lint`: every problem of agent files, without a server.

use super::LintArgs;
use super::problem::FoundProblem;
use super::reach::Reach;
use crate::commands::Session;
use crate::failure::Exit;
use crate::output::Format;
use std::process::ExitCode;
use turnstone_specs::agent_spec::{self, Registry};

/// Reads the files and prints their problems. Only a server knows its tools, so their names are not checked here.
///
/// # Errors
/// A needed part of the configuration is wrong, or standard output cannot be written.
pub async fn run(args: &LintArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let output = &session.output;
    let reach = match args.reach {
        true => Some(Reach::with(session.config(Vec::new())?.config)?),
        false => None,
    };
    let files = args.files.expanded();
    let (mut found, mut documents, mut unreadable) = (Vec::new(), Vec::new(), false);
    for (file, given) in files.iter().zip(0_usize..) {
        let file = match file {
            Ok(file) => file,
            Err(failure) => {
                unreadable = true;
                let of = format!("argument {}", given + 1);
                found.push(FoundProblem::unreadable(&of, failure.message.clone()));
                continue;
            }
        };
        match super::read(file) {
            Ok(read) => documents.push(read),
            Err(failure) => {
                unreadable = true;
                found.push(FoundProblem::unreadable(file, failure.message));
            }
        }
    }
    let registry = registry_of(&documents);
    let allowed = reach.as_ref().map(Reach::allowed);
    for (name, source) in documents {
        if agent_spec::is_agent_spec(&source) {
            let problems =
                agent_spec::lint(&source, &registry, allowed.as_ref()).unwrap_or_else(|problems| problems);
            found.extend(problems.into_iter().map(|problem| FoundProblem::of(&name, problem)));
            continue;
        }
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
    let files = files.len();
    let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    output.remark(&format!(
        "{} checked, {}, {}",
        counted(files, "file"),
        counted(errors, "error"),
        counted(found.len() - errors, "warning")
    ));
    let exit = match (unreadable, errors) {
        (true, _) => Exit::Usage,
        (false, 0) => Exit::Ok,
        (false, _) => Exit::Failed,
    };
    Ok(exit.into())
}

/// The shared components of Agent Spec documents. They come from those files that only hold `$referenced_components`.
fn registry_of(documents: &[(String, String)]) -> Registry {
    let mut registry = Registry::default();
    for (_, source) in documents.iter().filter(|(_, source)| agent_spec::is_disaggregated(source)) {
        // A document whose form is wrong is reported when it is checked itself.
        registry = registry.clone().with_document(source).unwrap_or(registry);
    }
    registry
}
