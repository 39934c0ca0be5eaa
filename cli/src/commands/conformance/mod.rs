//! `turnstone conformance`: black-box cases of the five specifications, over HTTP alone.

mod case;
mod report;

use super::Session;
use crate::failure::Failure;
use crate::output::Format;
use case::Case;
use clap::{Args, Subcommand, ValueEnum};
use report::Report;
use std::path::PathBuf;
use std::process::ExitCode;

/// `turnstone conformance`.
#[derive(Clone, Debug, Subcommand)]
pub enum ConformanceCommand {
    /// Write the configuration of a server for these cases: a scripted model, and nothing else
    Setup {
        /// The folder to create
        folder: PathBuf,
    },
    /// Run the cases against a server that was started with that configuration; exit code 1 when one fails
    #[command(after_help = "\
Example:
  turnstone conformance setup here && (cd here && turnstone dev --data data --bind 127.0.0.1:8090 &)
  turnstone conformance run --url http://127.0.0.1:8090 all --junit report.xml")]
    Run(RunArgs),
}

/// `turnstone conformance run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    /// The specification
    #[arg(value_enum, default_value_t)]
    specification: Specification,
    /// Also write the report as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

/// A specification with cases.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Specification {
    /// All of them
    #[default]
    All,
    /// Open Job Spec with its agent extension
    Ojs,
    /// OpenAgentSpec
    Openagentspec,
    /// OSSA
    Ossa,
    /// The Agent Protocol
    AgentProtocol,
    /// Agent Spec
    AgentSpec,
}

/// The cases of each specification, in TOML.
const CASES: [(Specification, &str, &str); 5] = [
    (Specification::Ojs, "ojs", include_str!("cases/ojs.toml")),
    (Specification::Openagentspec, "openagentspec", include_str!("cases/openagentspec.toml")),
    (Specification::Ossa, "ossa", include_str!("cases/ossa.toml")),
    (Specification::AgentProtocol, "agent-protocol", include_str!("cases/agent-protocol.toml")),
    (Specification::AgentSpec, "agent-spec", include_str!("cases/agent-spec.toml")),
];

const SETTINGS: &str = "\
[providers.scripted]
kind = \"scripted\"
script = \"script.yaml\"

[models]
default_provider = \"scripted\"
default_model = \"m\"
";

const SCRIPT: &str = "\
rules:
  - when: {system_contains: conformance-asker, tool_results: 0}
    answer: {tool_calls: [{name: ask-user, arguments: {request_keys: {colour: \"Which colour?\"}}}]}
  - when: {system_contains: conformance-asker}
    answer: {text: thank you}
  - when: {user_contains: \"conformance: say hello\"}
    answer: {text: hello, usage: {input: 10, output: 1}}
  - answer: {text: \"no rule of the conformance script matches\"}
";

/// Runs the command.
///
/// # Errors
/// The folder cannot be written, or no server answers.
pub async fn run(command: ConformanceCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        ConformanceCommand::Setup { folder } => {
            let written = std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::write(folder.join("turnstone.toml"), SETTINGS))
                .and_then(|()| std::fs::write(folder.join("script.yaml"), SCRIPT));
            written.map_err(|error| Failure::failed(format!("{}: {error}", folder.display())))?;
            session.output.remark(&format!("start a server there: cd {} && turnstone dev", folder.display()));
            Ok(ExitCode::SUCCESS)
        }
        ConformanceCommand::Run(args) => cases(&args, session).await,
    }
}

async fn cases(args: &RunArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let client = session.client()?;
    let mut report = Report::default();
    let wanted = |of: Specification| args.specification == Specification::All || args.specification == of;
    for (_, name, text) in CASES.iter().filter(|(of, ..)| wanted(*of)) {
        for case in Case::read(text)? {
            let outcome = case.run(&client).await?;
            report.add(name, &case, outcome);
        }
    }
    if let Some(file) = &args.junit {
        let written = std::fs::write(file, report.junit());
        written.map_err(|error| Failure::failed(format!("{}: {error}", file.display())))?;
    }
    match session.output.format {
        Format::Json => session.output.json(&report.json())?,
        Format::Ids => {
            for name in report.failed() {
                session.output.line(&name)?;
            }
        }
        Format::Table => {
            for line in report.lines() {
                session.output.line(&line)?;
            }
        }
    }
    Ok(if report.failed().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_is_read_and_has_a_name_of_its_own() {
        let mut names = std::collections::BTreeSet::new();
        for (_, of, text) in CASES {
            for case in Case::read(text).unwrap_or_else(|error| panic!("{of}: {}", error.message)) {
                assert!(names.insert(case.name.clone()), "{of}: {} is there twice", case.name);
                assert!(!case.rows.is_empty(), "{of}: {} names no row", case.name);
            }
        }
    }
}
