//! Agents that are registered at start-up: those of `[agents] dir`, and the examples under `--demo`.

use crate::commands::agent::problem::FoundProblem;
use crate::failure::Failure;
use crate::output::{self, text};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use turnstone_domain::agent::ToolRuleBook;
use turnstone_domain::{AgentDefinition, Timestamp};
use turnstone_specs::Names;
use turnstone_specs::Reach;
use turnstone_store::{NewAgent, NewTenants, Store};
use turnstone_worker::tool::Toolbox;

/// The extensions of agent files.
const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// A document and the name it is reported under.
pub type Document = (String, String);

/// The names that agents may use.
#[derive(Clone, Debug, Default)]
pub struct KnownTools {
    /// The tools of the registry.
    pub tools: Vec<String>,
    /// The tools that take no credentials.
    pub keyless: Vec<String>,
    /// The MCP servers.
    pub servers: Vec<String>,
    /// The hosts of agents on other servers.
    pub remote: Vec<String>,
    /// The users and groups who may review; `None` is any user.
    pub reviewers: Option<Vec<String>>,
    /// The programs and addresses that Agent Spec documents may use.
    pub reach: Reach,
    /// The rules for the calls of tools.
    pub rules: ToolRuleBook,
}

impl KnownTools {
    /// Returns the names for a worker with this toolbox.
    #[must_use]
    pub fn of(toolbox: &Toolbox, remote: &[String], reviewers: Option<Vec<String>>) -> Self {
        Self {
            tools: toolbox.specs().into_iter().map(|tool| tool.name).collect(),
            keyless: toolbox.keyless(),
            servers: toolbox.servers().map(|server| server.name().to_owned()).collect(),
            remote: remote.to_vec(),
            reviewers,
            reach: toolbox.reach(),
            rules: toolbox.rules().clone(),
        }
    }

    /// Returns the names for people: the tools, and `github.*` for a server whose tools are not known yet.
    #[must_use]
    pub fn shown(&self) -> Vec<String> {
        self.tools.iter().cloned().chain(self.servers.iter().map(|server| format!("{server}.*"))).collect()
    }
}

/// The outcome of registering the documents.
#[derive(Debug, Default)]
pub struct Registered {
    /// The agents that are registered now, by name.
    pub names: Vec<String>,
    /// The problems of the documents; those with errors were left out.
    pub problems: Vec<FoundProblem>,
}

impl Registered {
    /// Prints the problems of the documents on standard error.
    pub fn print_problems(&self) {
        for problem in &self.problems {
            output::say(&text::line(&problem.to_string()));
        }
    }
}

/// Returns the documents of a directory, in the order of their names. Subdirectories are not searched.
///
/// # Errors
/// The directory, or a file in it, cannot be read.
pub fn documents(dir: &Path) -> Result<Vec<Document>, Failure> {
    let unreadable = |path: &Path, error: &io::Error| {
        Failure::usage(format!("`agents.dir`: {} cannot be read: {error}", path.display()))
            .hint("`turnstone config show` says where `agents.dir` comes from")
    };
    let files = documents_of(dir).map_err(|error| unreadable(dir, &error))?;
    files
        .into_iter()
        .map(|path| match std::fs::read_to_string(&path) {
            Ok(text) => Ok((path.display().to_string(), text)),
            Err(error) => Err(unreadable(&path, &error)),
        })
        .collect()
}

/// Returns the files in a directory that are documents by their names, in their order.
///
/// # Errors
/// The directory cannot be read.
pub fn documents_of(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>())?;
    files.retain(|path| is_agent_file(path));
    files.sort();
    Ok(files)
}

fn is_agent_file(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    EXTENSIONS.contains(&extension.to_ascii_lowercase().as_str()) && path.is_file()
}

/// Registers agents. A document that is no usable agent, or repeats the name of an earlier one, is reported and left
/// out. With `keep`, agents that are registered already stay as they are.
///
/// # Errors
/// The store failed.
pub async fn register(
    store: &Store,
    documents: Vec<Document>,
    known_tools: KnownTools,
    keep: bool,
    now: Timestamp,
) -> anyhow::Result<Registered> {
    let known: Vec<String> =
        store.views.agents(None).await?.into_iter().map(|record| record.definition.name).collect();
    let hosted = known.clone();
    // A hostile document can take a while to read.
    let (found, problems) =
        tokio::task::spawn_blocking(move || read_all(documents, &known_tools, &hosted)).await?;
    let mut registered = Registered { names: Vec::new(), problems };
    for (name, (definition, source)) in found {
        if !(keep && known.contains(&name)) {
            let tenants = NewTenants::Unchanged;
            store.intake.register_agent(NewAgent { definition, source, tenants, at: now }).await?;
        }
        registered.names.push(name);
    }
    Ok(registered)
}

type Found = BTreeMap<String, (AgentDefinition, String)>;

/// Reads the documents; they may name one another, in any order.
fn read_all(
    documents: Vec<Document>,
    known_tools: &KnownTools,
    known: &[String],
) -> (Found, Vec<FoundProblem>) {
    let mut hosted = known.to_vec();
    hosted.extend(
        documents.iter().filter_map(|(_, source)| Some(turnstone_specs::read(source, None).ok()?.0.name)),
    );
    let hosted: Vec<&str> = hosted.iter().map(String::as_str).collect();
    let keyless: Vec<&str> = known_tools.keyless.iter().map(String::as_str).collect();
    let remote: Vec<&str> = known_tools.remote.iter().map(String::as_str).collect();
    let reviewers: Option<Vec<&str>> =
        known_tools.reviewers.as_ref().map(|names| names.iter().map(String::as_str).collect());
    let (mut found, mut problems) = (Found::new(), Vec::new());
    for (file, source) in documents {
        let name = turnstone_specs::name_for(&source, &known_tools.rules);
        let (tools, servers) =
            known_tools.rules.visible_to(name.as_deref(), &known_tools.tools, &known_tools.servers);
        let names = Names {
            tools: &tools,
            keyless: &keyless,
            servers: &servers,
            agents: &hosted,
            remote: &remote,
            reviewers: reviewers.as_deref(),
            reach: Some(&known_tools.reach),
            open: false,
        };
        let reported = match turnstone_specs::read(&source, Some(&names)) {
            Err(errors) => errors,
            Ok((definition, warnings)) => {
                let reserved = turnstone_specs::reserved(&definition.name, known_tools.reviewers.as_deref());
                if let Some(problem) = reserved {
                    problems.push(FoundProblem::of(&file, problem));
                } else if found.contains_key(&definition.name) {
                    problems.push(duplicate(&file, &definition.name));
                } else {
                    let source = turnstone_specs::agent_spec::shown(source, &definition, &warnings, false);
                    found.insert(definition.name.clone(), (definition, source));
                }
                warnings
            }
        };
        problems.extend(reported.into_iter().map(|problem| FoundProblem::of(&file, problem)));
    }
    (found, problems)
}

fn duplicate(file: &str, name: &str) -> FoundProblem {
    FoundProblem {
        file: file.to_owned(),
        line: 0,
        column: 0,
        rule: "duplicate-agent".to_owned(),
        severity: "error".to_owned(),
        message: format!("an earlier file defines the agent `{name}` already; this one is left out"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, capability: &str) -> String {
        format!(
            "kind: \"openagentspec:v1/agent\"\nname: {name}\ndescription: An agent.\nintent: You answer.\nowner: me\n\
             capabilities:\n  {capability}:\n    user_identity: false\n"
        )
    }

    #[test]
    fn a_bad_file_does_not_keep_the_others_out() {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [
            ("a.yaml", agent("first", "search")),
            ("b.YML", "name: [".to_owned()),
            ("c.yaml", agent("first", "search")),
            ("d.yaml", agent("second", "no-such-tool")),
            ("readme.md", "not an agent".to_owned()),
        ] {
            std::fs::write(dir.path().join(file), text).unwrap();
        }
        let documents = documents(dir.path()).unwrap();
        assert_eq!(documents.len(), 4);
        let known = KnownTools { tools: vec!["search".to_owned()], ..KnownTools::default() };
        let (found, problems) = read_all(documents, &known, &[]);
        assert_eq!(found.keys().collect::<Vec<_>>(), ["first"]);
        let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(shown.iter().any(|line| line.contains("b.YML:1:")), "{shown:?}");
        assert!(shown.iter().any(|line| line.contains("c.yaml: error[duplicate-agent]")), "{shown:?}");
        assert!(
            shown.iter().any(|line| line.contains("d.yaml:7:") && line.contains("no-such-tool")),
            "{shown:?}"
        );
    }

    #[test]
    fn a_directory_that_is_not_there_is_a_usage_error() {
        let failure = documents(Path::new("/nowhere/agents")).unwrap_err();
        assert_eq!(failure.exit, crate::failure::Exit::Usage);
        assert!(failure.message.contains("/nowhere/agents"), "{failure}");
    }
}
