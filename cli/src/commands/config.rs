//! `turnstone config`: the effective configuration, and whether it can work.

use super::Session;
use crate::config::{Address, Config, Loaded, ModelsConfig, shown};
use crate::failure::Exit;
use crate::output::{Format, table, text};
use clap::Subcommand;
use std::process::ExitCode;
use std::sync::Arc;
use turnstone_domain::{Clock, SystemClock};
use turnstone_worker::model::{ModelDefaults, Providers};
use turnstone_worker::tool::Toolbox;

/// `turnstone config`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every value and where it came from; secrets by reference only
    Show,
    /// Check the file, the environment, and that every secret and directory named is there
    Check,
}

/// Shows or checks.
///
/// # Errors
/// The configuration cannot be read, or standard output cannot be written.
pub fn run(command: &ConfigCommand, session: &Session) -> anyhow::Result<ExitCode> {
    let loaded = session.config(Vec::new())?;
    match command {
        ConfigCommand::Show => show(&loaded, session),
        ConfigCommand::Check => check(&loaded, session),
    }
}

fn show(loaded: &Loaded, session: &Session) -> anyhow::Result<ExitCode> {
    let list = shown(loaded);
    let output = &session.output;
    match output.format {
        Format::Json => output.json(&list)?,
        Format::Ids => list.iter().try_for_each(|shown| output.line(&shown.key))?,
        Format::Table => {
            let cell = |text: String| text::line(&text);
            let rows = list
                .into_iter()
                .map(|s| vec![cell(s.key), cell(table::plain(&s.value)), cell(s.source)])
                .collect();
            output.line(&table::ruled(vec!["KEY", "VALUE", "SOURCE"], rows, output.tty))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check(loaded: &Loaded, session: &Session) -> anyhow::Result<ExitCode> {
    let problems = problems(&loaded.config);
    let key = loaded.config.encryption.keys().ok().flatten().map(|keys| keys.id().to_owned());
    if session.output.format == Format::Json {
        session.output.json(&serde_json::json!({
            "ok": problems.is_empty(),
            "problems": problems,
            "encryption_key": key,
        }))?;
    } else {
        problems
            .iter()
            .try_for_each(|problem| session.output.line(&format!("error: {}", text::line(problem))))?;
    }
    if problems.is_empty() {
        session.output.remark("the configuration is in order");
        if loaded.config.providers.is_empty() {
            session
                .output
                .remark("no provider is configured: agent jobs fail at workers of this configuration");
        }
        session.output.remark(&match key {
            Some(key) => format!("what is stored is encrypted at rest with key {key}"),
            None => "what is stored is not encrypted at rest: `encryption.key` names no key".to_owned(),
        });
        return Ok(ExitCode::SUCCESS);
    }
    Ok(Exit::Failed.into())
}

/// What is wrong with the values, as far as it can be seen without asking anybody.
#[must_use]
pub fn problems(config: &Config) -> Vec<String> {
    let mut problems: Vec<String> = Vec::new();
    let keys = config.server.api_keys.iter().map(|key| ("server.api_keys", key));
    for (name, reference) in keys.chain(config.client.api_key.iter().map(|key| ("client.api_key", key))) {
        if let Err(problem) = reference.resolve() {
            problems.push(format!("`{name}`: {problem}"));
        }
    }
    if let Some(Err(problem)) = config.store.url.as_ref().map(Address::resolve) {
        problems.push(format!("`store.url`: {problem}"));
    }
    if let Err(failure) = config.encryption.keys() {
        problems.push(failure.message);
    }
    if let Some(dir) = config.agents.dir.as_ref().filter(|dir| !dir.is_dir()) {
        problems.push(format!("`agents.dir`: {} is not a directory", dir.display()));
    }
    problems.extend(from_worker(config));
    problems
}

/// Sets the providers, tools and MCP servers up as a worker does, without calling any of them; gives what is wrong.
fn from_worker(config: &Config) -> Vec<String> {
    let ModelsConfig { default_provider, default_model, .. } = config.models.clone();
    let defaults = ModelDefaults { provider: default_provider, model: default_model };
    let providers = Providers::from_config(&config.providers, defaults, &config.base).err();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let tools = Toolbox::from_config(&config.tools, Arc::clone(&clock)).err();
    let servers = Toolbox::default().with_mcp(&config.mcp, &clock).err();
    providers.into_iter().chain(tools).chain(servers).collect()
}
