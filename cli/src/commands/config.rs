//! `turnstone config`: shows and checks the effective configuration.

use super::Session;
use crate::commands::serve::{equipment, fleet_store, listening, programs};
use crate::config::{Config, EncryptionConfig, Loaded, ModelsConfig, shown};
use crate::failure::Exit;
use crate::output::{Format, table, text};
use clap::Subcommand;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use turnstone_domain::{Clock, SystemClock};
use turnstone_store::limits::LocalLimits;
use turnstone_store::redis;
use turnstone_worker::model::{ModelDefaults, ModelLimits, Providers};
use turnstone_worker::tool::Toolbox;

/// `turnstone config`.
#[derive(Clone, Copy, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every value and where it came from; secrets by reference only
    Show,
    /// Check the file, the environment, and that every named secret and directory exists
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
    Ok(Exit::Usage.into())
}

/// Returns the problems of the values that are visible without any connection.
#[must_use]
pub fn problems(config: &Config) -> Vec<String> {
    let mut problems: Vec<String> = Vec::new();
    let keys = config.server.api_keys.iter().map(|key| ("server.api_keys", key));
    for (name, reference) in keys.chain(config.client.api_key.iter().map(|key| ("client.api_key", key))) {
        if let Err(problem) = reference.resolve() {
            problems.push(format!("`{name}`: {problem}"));
        }
    }
    problems.extend(addresses(config));
    if let Err(failure) = config.encryption.keys() {
        problems.push(failure.message);
    }
    let refused = [
        listening::tls(config).err(),
        listening::peers(config).err(),
        listening::issuers(config).err(),
        listening::attest_key(config).err(),
        listening::trusted_keys(config).err(),
        config.prices().err(),
    ];
    problems.extend(refused.into_iter().flatten().map(|failure| failure.message));
    if let Err(problem) = config.budgets.rules() {
        problems.push(problem);
    }
    if let Some(dir) = config.agents.dir.as_ref().filter(|dir| !dir.is_dir()) {
        problems.push(format!("`agents.dir`: {} is not a directory", dir.display()));
    }
    problems.extend(programs(config));
    problems.extend(from_worker(config));
    problems
}

/// Checks that the programs and folders of `[tool_policy.allowed_commands]` exist on this machine.
fn programs(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, allowed) in config.tool_policy.allowed_commands.iter() {
        let section = format!("[tool_policy.allowed_commands.{name}]");
        let program = &allowed.program;
        // A relative path is reported by itself.
        if program.is_absolute() && !is_executable(program) {
            problems.push(format!("{section} program: {} is no executable file", program.display()));
        }
        if let Some(folder) = allowed.cwd.as_ref().filter(|folder| folder.is_absolute() && !folder.is_dir()) {
            problems.push(format!("{section} cwd: {} is not a directory", folder.display()));
        }
    }
    problems
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Checks the addresses of the stores, without connecting to them.
fn addresses(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    if config.store.url.is_some() {
        // Problems with encryption keys are reported separately.
        let bare = Config { encryption: EncryptionConfig::default(), ..config.clone() };
        match fleet_store::options(&bare).map(|options| options.check_address()) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => problems.push(format!("`store.url`: {error}")),
            Err(failure) => problems.push(failure.message),
        }
    }
    match fleet_store::redis_url(config).map(|url| url.map(|url| redis::check_address(&url))) {
        Ok(None | Some(Ok(()))) => {}
        Ok(Some(Err(error))) => problems.push(format!("`redis.url`: {error}")),
        Err(failure) => problems.push(failure.message),
    }
    problems
}

/// Sets up providers, tools, limits and other servers as a worker does, without calling any of them. Returns the
/// problems.
#[must_use]
pub fn from_worker(config: &Config) -> Vec<String> {
    let ModelsConfig { default_provider, default_model, .. } = config.models.clone();
    let defaults = ModelDefaults { provider: default_provider, model: default_model };
    let providers = Providers::from_config(&config.providers, defaults, &config.base);
    let limits = providers.as_ref().ok().and_then(|providers| {
        ModelLimits::from_config(&config.limits, providers, Arc::new(LocalLimits::one_of(1))).err()
    });
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let toolbox = |made: Result<Toolbox, String>| made.err();
    let own = match equipment::own_addresses(config, None) {
        Ok(own) => own,
        Err(failure) => return vec![failure.message],
    };
    let tools = Toolbox::avoiding(own.clone()).with_tools(&config.tools, Arc::clone(&clock));
    // Rules name tools of every kind; a problem of those is reported by itself.
    let rules = tools.clone().and_then(|toolbox| toolbox.with_mcp(&config.mcp, &clock));
    let rules = rules.and_then(|toolbox| toolbox.with_remote(&config.remote, &clock)).ok();
    let rules = rules.map(|toolbox| equipment::with_rules(toolbox, config));
    let others = [
        limits,
        programs::programs(config).err(),
        toolbox(tools),
        toolbox(Toolbox::avoiding(own.clone()).with_mcp(&config.mcp, &clock)),
        toolbox(Toolbox::avoiding(own).with_policy(config.tool_policy.clone(), &clock)),
        rules.and_then(toolbox),
        toolbox(Toolbox::default().with_remote(&config.remote, &clock)),
    ];
    providers.err().into_iter().chain(others.into_iter().flatten()).collect()
}
