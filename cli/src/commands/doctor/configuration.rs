//! Findings without any connection: secrets, directories, providers, tools, and access.

use crate::commands::config::problems;
use crate::commands::serve::listening::keys;
use crate::commands::serve::open_files;
use crate::commands::serve::programs;
use crate::config::Config;
use turnstone_store::Finding;
use turnstone_worker::tool::program::Sandbox;

/// The advice for a configuration without a provider.
const NO_PROVIDER: &str =
    "add a section such as [providers.openai] with `kind` and `api_key` to the configuration of the workers";

/// Checks the values.
pub fn findings(config: &Config) -> Vec<Finding> {
    let mut findings: Vec<Finding> = problems(config)
        .into_iter()
        .map(|problem| Finding::bad(problem, "`turnstone config show` says where each value comes from"))
        .collect();
    if findings.is_empty() {
        findings.push(Finding::good("secrets, directories, providers and tools are there"));
    }
    findings.push(exposure(config));
    findings.extend(sandbox(config));
    findings.extend(
        open_files::short_of(config.worker.slots).map(|short| Finding::bad(short, open_files::ADVICE)),
    );
    if config.providers.is_empty() {
        findings.push(Finding::bad("no model provider is configured: every agent job fails", NO_PROVIDER));
    }
    findings
}

/// Checks what this system can do for the programs of the configuration.
fn sandbox(config: &Config) -> Vec<Finding> {
    let starts_programs = !config.tool_policy.allowed_commands.is_empty()
        || config.mcp.values().any(|server| !server.command.is_empty());
    let Some(programs) = programs::programs(config).ok().filter(|_| starts_programs) else {
        return Vec::new();
    };
    if config.tool_policy.sandbox == Sandbox::Off {
        return vec![Finding::good(
            "[tool_policy] sandbox = \"off\": programs of MCP servers start without limits",
        )];
    }
    let missing = programs::shortfalls(config, &programs);
    if missing.is_empty() {
        return vec![Finding::good("this system has every limit for the programs of MCP servers")];
    }
    let advice = "change the system, or give these programs a machine or a user of their own";
    missing.into_iter().map(|missing| Finding::bad(missing, advice)).collect()
}

fn exposure(config: &Config) -> Finding {
    let bind = config.server.bind;
    let Ok(keys) = keys(config) else {
        return Finding::bad(format!("the api on {bind} has no usable key"), "see `server.api_keys` above");
    };
    let needs_key = !keys.is_empty() || !config.server.issuers.is_empty();
    match turnstone_api::check_exposure(bind, needs_key) {
        Err(error) => Finding::bad(
            format!("the api on {bind} would be open to all clients"),
            format!("{error} The keys are in `server.api_keys`."),
        ),
        Ok(()) if !needs_key => {
            Finding::good(format!("the api on {bind} needs no key and answers this machine only"))
        }
        Ok(()) => Finding::good(format!("the api on {bind} asks for a key or a token")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_api_without_a_key_is_trouble() {
        let mut config = Config::default();
        assert!(exposure(&config).ok);
        config.server.bind = "0.0.0.0:8080".parse().unwrap();
        let finding = exposure(&config);
        assert!(!finding.ok && finding.advice.contains("server.api_keys"), "{finding:?}");
    }
}
