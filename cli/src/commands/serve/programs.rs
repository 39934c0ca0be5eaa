//! The programs that a worker starts: MCP servers over stdio, of the configuration and of documents.

use crate::conceal;
use crate::config::Config;
use crate::failure::Failure;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use turnstone_worker::tool::Programs;

/// The command that limits its process and becomes a program. It is not listed in `--help`: only a worker gives it.
pub const RUN_PROGRAM: &str = "run-program";

/// Returns the way in which the programs of this configuration start.
///
/// # Errors
/// A sentence that names the section and the key that is wrong.
pub fn programs(config: &Config) -> Result<Programs, String> {
    let own = if cfg!(target_os = "linux") {
        // It is this very program, also after its file was replaced.
        OsString::from("/proc/self/exe")
    } else {
        std::env::current_exe()
            .map_err(|error| format!("the path of this program is unknown: {error}"))?
            .into()
    };
    let programs = Programs::through(vec![own, RUN_PROGRAM.into()], &config.tool_policy)?;
    for (name, server) in &config.mcp {
        let checked = server.program.check(config.tool_policy.sandbox);
        checked.map_err(|problem| format!("[mcp.{name}] program.{problem}"))?;
    }
    Ok(programs.hiding(&hidden(config)).exposed(conceal::exposed()))
}

/// Returns what the configured programs need and this system cannot do, in sentences.
#[must_use]
pub fn shortfalls(config: &Config, programs: &Programs) -> Vec<String> {
    let of_sections = config.mcp.values().filter(|server| !server.command.is_empty());
    let limits = of_sections.map(|server| Some(&server.program));
    let of_documents = (!config.tool_policy.allowed_commands.is_empty()).then_some(None);
    let missing: BTreeSet<String> =
        limits.chain(of_documents).flat_map(|limits| programs.shortfalls(limits)).collect();
    missing.into_iter().collect()
}

/// Logs what the system cannot do for the configured programs.
///
/// # Errors
/// The same, if the configuration requires it.
pub fn check(config: &Config, programs: &Programs) -> Result<(), Failure> {
    let missing = shortfalls(config, programs);
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join("; ");
    if programs.are_required() {
        return Err(Failure::usage(format!("[tool_policy] sandbox = \"required\", but {missing}")).hint(
            "change the system, or write sandbox = \"best\" to start programs with the limits that it has",
        ));
    }
    tracing::warn!(missing, "programs of MCP servers start with fewer limits");
    Ok(())
}

/// Returns the files of this process that programs may not open: its data, its configuration and its secrets.
fn hidden(config: &Config) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = config.file.iter().cloned().collect();
    hidden.push(config.server.data.clone());
    hidden.extend(config.server.tls.iter().map(|tls| tls.key.clone()));
    collect_files(&serde_json::to_value(config).unwrap_or_default(), &mut hidden);
    hidden
}

/// Collects the files that references of the form `file:/path` name.
fn collect_files(value: &Value, files: &mut Vec<PathBuf>) {
    match value {
        Value::String(text) => files.extend(text.strip_prefix("file:").map(PathBuf::from)),
        Value::Array(values) => values.iter().for_each(|value| collect_files(value, files)),
        Value::Object(members) => members.values().for_each(|value| collect_files(value, files)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(toml: &str) -> Config {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        std::fs::write(file.path(), toml).unwrap();
        let layers = crate::config::Layers { file: Some(file.path().into()), ..Default::default() };
        layers.load().unwrap().config
    }

    #[test]
    fn secrets_and_data_are_hidden_from_programs() {
        let config = config(
            "[server]\ndata = '/d'\napi_keys = ['file:/k/api']\n[providers.p]\nkind = 'openai'\napi_key = 'file:/k/p'\n",
        );
        let hidden = hidden(&config);
        for path in ["/d", "/k/api", "/k/p"] {
            assert!(hidden.contains(&PathBuf::from(path)), "{path}: {hidden:?}");
        }
        assert!(hidden[0].extension().is_some_and(|end| end == "toml"), "{hidden:?}");
    }

    #[test]
    fn a_required_sandbox_refuses_a_start_that_lacks_it() {
        let config = config("[tool_policy]\nsandbox = 'required'\n[mcp.a]\ncommand = ['a']\n");
        let programs = programs(&config).unwrap().exposed(Some("its memory is open"));
        let failure = check(&config, &programs).unwrap_err();
        assert!(failure.message.contains("its memory is open"), "{failure}");
        let none = Config { mcp: std::collections::BTreeMap::default(), ..config };
        assert!(check(&none, &programs).is_ok(), "no program is configured");
    }

    #[test]
    fn a_limit_without_a_sandbox_is_refused() {
        let config =
            config("[tool_policy]\nsandbox = 'off'\n[mcp.a]\ncommand = ['a']\nprogram = { uid = 7 }\n");
        let problem = programs(&config).unwrap_err();
        assert!(problem.contains("[mcp.a] program") && problem.contains("off"), "{problem}");
    }
}
