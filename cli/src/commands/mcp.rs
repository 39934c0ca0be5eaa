//! `turnstone mcp`: the MCP servers of the configuration, and what they offer now.

use super::Session;
use super::serve::programs;
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::output::{Format, Output, table, text};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::process::ExitCode;
use std::sync::Arc;
use turnstone_domain::agent::{AgentFormat, capability_name};
use turnstone_domain::{Clock, SystemClock};
use turnstone_worker::tool::Tool as _;
use turnstone_worker::tool::Toolbox;
use turnstone_worker::tool::mcp::config::Pin;
use turnstone_worker::tool::mcp::{Catalogue, McpServer, McpTool};

/// How much of a description a table shows, in characters.
const SHOWN: usize = 60;

/// `turnstone mcp`.
#[derive(Clone, Debug, Subcommand)]
pub enum McpCommand {
    /// List the MCP servers of the configuration and the capability names of their tools, without starting or
    /// connecting to any
    List,
    /// Start or connect to the MCP servers and show the tools that agents get; exit code 1 when one cannot be used
    #[command(after_help = "\
Examples:
  turnstone mcp check                  all servers of turnstone.toml
  turnstone mcp check github -o json   one, with the digest to pin it to")]
    Check(CheckArgs),
}

/// `turnstone mcp check`.
#[derive(Clone, Debug, Args)]
pub struct CheckArgs {
    /// The servers' names in the configuration [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
}

/// The offer of a server.
#[derive(Debug, Serialize)]
struct Checked {
    server: String,
    address: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    tools: Vec<Shown>,
    withheld: Vec<Shown>,
}

/// A tool, and its description.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    /// Its name in OpenAgentSpec documents; nothing if several tools would have this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    capability: Option<String>,
    text: String,
}

/// Shown for a tool that no OpenAgentSpec document can name.
const COLLIDES: &str = "collides";

/// Runs the command.
///
/// # Errors
/// The configuration cannot be used, a name is unknown, or standard output cannot be written.
pub async fn run(command: McpCommand, session: &Session) -> anyhow::Result<ExitCode> {
    crate::client::install_tls();
    let config = session.config(Vec::new())?.config;
    match command {
        McpCommand::List => list(&config, &session.output),
        McpCommand::Check(args) => check(&config, args, &session.output).await,
    }
}

fn list(config: &Config, output: &Output) -> anyhow::Result<ExitCode> {
    match output.format {
        Format::Json => output.json(&config.mcp)?,
        Format::Ids => config.mcp.keys().try_for_each(|name| output.line(name))?,
        Format::Table => {
            let pin = |pin: &Pin| match pin {
                Pin::First(false) => "no".to_owned(),
                Pin::First(true) => "to what is first seen".to_owned(),
                Pin::Digest(digest) => digest.chars().take(19).collect(),
            };
            let rows = config.mcp.iter().map(|(name, server)| {
                let (tools, capabilities) = match &server.tools {
                    None => ("all".to_owned(), format!("{}.*", capability_name(name))),
                    Some(tools) => (tools.join(", "), capabilities(name, tools).join(", ")),
                };
                let cells = [server.address(), tools, capabilities, pin(&server.pin)];
                std::iter::once(name.clone()).chain(cells).collect()
            });
            output.line(&table::ruled(
                vec!["SERVER", "ADDRESS", "TOOLS", "CAPABILITIES", "PINNED"],
                rows.collect(),
                output.tty,
            ))?;
            if !config.mcp.is_empty() {
                output.remark(MAPPING);
            }
        }
    }
    if config.mcp.is_empty() {
        output.remark("no MCP server is configured; add a section [mcp.<name>] to turnstone.toml");
    }
    Ok(ExitCode::SUCCESS)
}

/// The rule for names of tools in an OpenAgentSpec document.
const MAPPING: &str = "an OpenAgentSpec capability is the tool's name in small letters, with `-` for each `_`; \
                       `turnstone mcp check` shows it for each tool that a server offers";

/// Returns the capability name of each tool of a server; [`COLLIDES`] replaces names that several tools would have.
fn capabilities(server: &str, tools: &[String]) -> Vec<String> {
    let names: Vec<String> = tools.iter().map(|tool| capability_name(&format!("{server}.{tool}"))).collect();
    let is_one = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    names.iter().map(|name| if is_one(name) { name.clone() } else { COLLIDES.to_owned() }).collect()
}

async fn check(config: &Config, args: CheckArgs, output: &Output) -> anyhow::Result<ExitCode> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let wrong = |problem: String| {
        Failure::usage(problem).hint("`turnstone config show` says where each value comes from")
    };
    let programs = programs::programs(config).map_err(wrong)?;
    programs::check(config, &programs)?;
    let toolbox = Toolbox::default().with_programs(programs).with_mcp(&config.mcp, &clock).map_err(wrong)?;
    if let Some(unknown) = args.names.iter().find(|name| toolbox.server(name).is_none()) {
        return Err(Failure::usage(format!("no MCP server `{unknown}` is configured"))
            .hint("`turnstone mcp list` shows those that are")
            .into());
    }
    let requested = toolbox
        .servers()
        .filter(|server| args.names.is_empty() || args.names.iter().any(|name| name == server.name()));
    let checked: Vec<Checked> = futures::future::join_all(requested.map(look)).await;
    toolbox.close().await;
    let ok = checked.iter().all(|server| server.ok);
    match output.format {
        Format::Json => output.json(&checked)?,
        Format::Ids => {
            checked.iter().flat_map(|server| &server.tools).try_for_each(|tool| output.line(&tool.name))?;
        }
        Format::Table => {
            let rows = checked.iter().flat_map(rows).collect();
            output.line(&table::ruled(vec!["TOOL", "CAPABILITY", "STATE", "WHAT"], rows, output.tty))?;
            for server in &checked {
                if let Some(digest) = &server.digest {
                    output
                        .remark(&format!("{}: to hold it to this, write pin = \"{digest}\"", server.server));
                }
            }
        }
    }
    Ok(if ok { ExitCode::SUCCESS } else { Exit::Failed.into() })
}

async fn look(server: &Arc<McpServer>) -> Checked {
    let mut checked = Checked {
        server: server.name().to_owned(),
        address: server.config().address(),
        ok: false,
        error: None,
        version: None,
        digest: None,
        tools: Vec::new(),
        withheld: Vec::new(),
    };
    match server.catalogue().await {
        Err(why) => checked.error = Some(why),
        Ok(catalogue) => {
            let full = |tool: &str| format!("{}.{tool}", server.name());
            checked.tools = offered(server.name(), &catalogue);
            checked.withheld = catalogue
                .withheld()
                .iter()
                .chain(catalogue.unread())
                .map(|(tool, why)| Shown { name: full(tool), capability: None, text: why.clone() })
                .collect();
            checked.digest = Some(catalogue.digest().to_owned());
            checked.version = server.server_info().await.map(|(name, version)| format!("{name} {version}"));
            // A pinned server may offer only the tools that were agreed to.
            checked.ok = match &server.config().pin {
                Pin::Digest(digest) => digest.eq_ignore_ascii_case(catalogue.digest()),
                Pin::First(_) => true,
            };
        }
    }
    checked
}

/// Returns the tools that agents may see, with their capability names.
fn offered(server: &str, catalogue: &Catalogue) -> Vec<Shown> {
    let shown = |(tool, found): (&str, &Arc<McpTool>)| {
        let capability = capability_name(&format!("{server}.{tool}"));
        let is_one = catalogue.named(&capability_name(tool), AgentFormat::OpenAgentSpec).is_ok();
        let spec = found.spec();
        Shown {
            name: spec.name.clone(),
            capability: is_one.then_some(capability),
            text: spec.description.clone(),
        }
    };
    catalogue.tools().map(shown).collect()
}

fn rows(server: &Checked) -> Vec<Vec<String>> {
    let short = |words: &str| text::line(&words.chars().take(SHOWN).collect::<String>());
    if let Some(error) = &server.error {
        let (all, state) = (format!("{}.*", server.server), "unavailable".to_owned());
        return vec![vec![all, String::new(), state, text::line(error)]];
    }
    let offered = server.tools.iter().map(|tool| {
        let capability = tool.capability.clone().unwrap_or_else(|| COLLIDES.to_owned());
        vec![tool.name.clone(), capability, "ok".to_owned(), short(&tool.text)]
    });
    let withheld = server.withheld.iter().map(|tool| {
        vec![text::line(&tool.name), String::new(), "withheld".to_owned(), text::line(&tool.text)]
    });
    offered.chain(withheld).collect()
}
