//! `turnstone agent`: check, register, list, show and remove agents.

mod apply;
mod delete;
mod export;
mod lint;
mod list;
pub mod problem;
mod reach;
mod run;
mod show;
mod svg;
pub mod tree;

use super::Session;
use crate::commands::serve::agents::documents_of;
use crate::failure::Failure;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// `turnstone agent`.
#[derive(Clone, Debug, Subcommand)]
pub enum AgentCommand {
    /// Print every problem of agent files with file, line, column and rule; needs no server
    Lint(LintArgs),
    /// Register agents from files, or replace them
    Apply(ApplyArgs),
    /// List the registered agents
    #[command(visible_alias = "ls")]
    List,
    /// Print an agent's document as it was written
    Show {
        /// Its name
        name: String,
        /// Print the nodes and agents of an Agent Spec document as a tree instead
        #[arg(long, conflicts_with = "svg")]
        tree: bool,
        /// Draw the nodes and edges of an Agent Spec document as an SVG picture instead
        #[arg(long)]
        svg: bool,
    },
    /// Give an agent a text, print its answer as it is written, and answer its questions at the prompt
    #[command(after_help = "Example: turnstone agent run researcher \"What is a turnstone?\"")]
    Run(run::RunArgs),
    /// Print an agent in the canonical form of a format, with references in the place of secrets
    Export(export::ExportArgs),
    /// Remove agents; engagements that run keep the definition they began with
    Delete(delete::DeleteArgs),
}

/// `turnstone agent lint`.
#[derive(Clone, Debug, Args)]
pub struct LintArgs {
    #[command(flatten)]
    files: FilesArgs,
    /// Also try to reach what the documents name, from here and with this configuration. HTTP tools and providers are
    /// tried with HEAD of their host, MCP servers with their list of tools, remote agents with their definition. No
    /// tool or model is called. The programs and private addresses of Agent Spec documents are compared with `[tool_policy]`
    #[arg(long)]
    pub reach: bool,
}

/// Files of agents.
#[derive(Clone, Debug, Args)]
pub struct FilesArgs {
    /// OpenAgentSpec, OSSA or Agent Spec documents; of a directory its *.yaml, *.yml and *.json; `-` is
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
}

/// `turnstone agent apply`.
#[derive(Clone, Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    files: FilesArgs,
    /// Register them although they name agents or tools that do not exist yet; calls of those fail until they exist
    #[arg(long)]
    allow_unresolved: bool,
    /// Keep the agents to this tenant; may be repeated. For all other tenants they do not exist. Left out, an agent serves
    /// the same tenants as before, and a new one serves all
    #[arg(long = "tenant", value_name = "TENANT", conflicts_with = "all_tenants")]
    tenants: Vec<String>,
    /// Let the agents serve all tenants again
    #[arg(long)]
    all_tenants: bool,
    /// A JSON file with the values that Agent Spec documents refer to and do not define, by their ids:
    /// `{"llm.api_key": "…"}`. Files that hold `$referenced_components` alone are used for the other files
    #[arg(long, value_name = "FILE")]
    registry: Option<String>,
}

impl FilesArgs {
    /// Returns the files; those of a directory in the order of their names.
    fn expanded(&self) -> Vec<Result<String, Failure>> {
        let of = |file: &String| match std::path::Path::new(file).is_dir() {
            false => vec![Ok(file.clone())],
            true => match documents_of(std::path::Path::new(file)) {
                Ok(found) if found.is_empty() => {
                    vec![Err(Failure::usage(format!(
                        "{file} is a directory without *.yaml, *.yml or *.json"
                    )))]
                }
                Ok(found) => found.into_iter().map(|path| Ok(path.display().to_string())).collect(),
                Err(error) => vec![Err(Failure::usage(format!("{file} cannot be read: {error}")))],
            },
        };
        self.files.iter().flat_map(of).collect()
    }
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: AgentCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        AgentCommand::Lint(args) => lint::run(&args, session).await,
        AgentCommand::Apply(args) => apply::run(&args, session).await,
        AgentCommand::List => list::run(session).await,
        AgentCommand::Show { name, tree, svg } => {
            let form = match (tree, svg) {
                (_, true) => show::ShownAs::Svg,
                (true, _) => show::ShownAs::Tree,
                _ => show::ShownAs::Document,
            };
            show::run(&name, form, session).await
        }
        AgentCommand::Run(args) => run::run(args, session).await,
        AgentCommand::Export(args) => export::run(&args, session).await,
        AgentCommand::Delete(args) => delete::run(args, session).await,
    }
}

/// Returns the text of a file and the name it is reported under.
fn read(file: &str) -> Result<(String, String), Failure> {
    use std::io::Read as _;
    let (name, text) = if file == "-" {
        let mut text = String::new();
        ("standard input", std::io::stdin().lock().read_to_string(&mut text).map(|_| text))
    } else {
        (file, std::fs::read_to_string(file))
    };
    let text = text.map_err(|error| Failure::usage(format!("{name} cannot be read: {error}")))?;
    let folder = std::path::Path::new(file).parent().filter(|_| file != "-");
    let whole = folder.and_then(|folder| turnstone_specs::with_template(&text, &|name| beside(folder, name)));
    Ok((name.to_owned(), whole.unwrap_or(text)))
}

/// The longest prompt that is read from a file, in bytes.
const MOST_PROMPT_BYTES: u64 = 256 * 1024;

/// Reads a file that a manifest names, below the manifest's folder.
fn beside(folder: &std::path::Path, name: &str) -> Option<String> {
    use std::path::{Component, Path};
    if !Path::new(name).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        return None;
    }
    let path = folder.join(name);
    let small = std::fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() <= MOST_PROMPT_BYTES);
    if small { std::fs::read_to_string(path).ok() } else { None }
}
