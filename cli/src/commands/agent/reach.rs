//! `turnstone agent lint --reach`: checks that the tools, models and agents of a document can be reached from here,
//! with this configuration.
//!
//! No tool and no model is called. Hosts of HTTP tools and providers receive a HEAD request. MCP servers receive a
//! request for their list of tools, remote agents for their definition. Private addresses are reached where the
//! configuration lets workers reach them.

use crate::commands::serve::equipment::{self, Equipment};
use crate::config::Config;
use futures::StreamExt as _;
use reqwest::{Client, Url};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::SystemClock;
use turnstone_domain::agent::delegation::Target;
use turnstone_domain::agent::{AgentDefinition, AgentFormat, Capability, ModelRef, Reached};
use turnstone_worker::tool::address_guard::check_url;
use turnstone_worker::tool::mcp::McpServer;
use turnstone_worker::tool::outbound;

/// The longest wait for one attempt.
const PATIENCE: Duration = Duration::from_secs(10);
/// The number of attempts at once.
const AT_ONCE: usize = 8;

/// Something that a document names and that cannot be used from here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missing {
    /// True if it may exist all the same: an agent that only the server knows.
    pub perhaps: bool,
    /// The thing, and why it cannot be used.
    pub message: String,
}

/// The attempt to make.
enum Trial {
    /// None: the result is known already.
    Known(Missing),
    /// The host of a URL.
    Host { what: String, url: String, private: bool },
    /// A server, and the tool that it must offer.
    Server { what: String, server: Arc<McpServer>, tool: Option<String> },
    /// A remote agent, by its address.
    Agent(String),
    /// A remote agent, by its name in the configuration.
    Named(String),
}

/// Tries to reach the things that documents name.
pub struct Reach {
    config: Config,
    equipment: Equipment,
    open: Client,
    guarded: Client,
}

impl Reach {
    /// Tries from here, with this configuration.
    ///
    /// # Errors
    /// The problem of the configuration.
    pub fn with(config: Config) -> anyhow::Result<Self> {
        crate::client::install_tls();
        let own = equipment::own_addresses(&config, None)?;
        let equipment = Equipment::of(&config, None, own, Arc::new(SystemClock))?;
        let open = outbound::open_client().map_err(anyhow::Error::msg)?;
        let guarded = outbound::guarded_client().map_err(anyhow::Error::msg)?;
        Ok(Self { config, equipment, open, guarded })
    }

    /// Returns the parts of a document that cannot be reached, in the order of the document.
    pub async fn missing(&self, agent: &AgentDefinition) -> Vec<Missing> {
        let trials = futures::stream::iter(self.trials(agent)).map(|trial| self.attempt(trial, agent.format));
        trials.buffered(AT_ONCE).filter_map(futures::future::ready).collect().await
    }

    /// Returns the programs and addresses that documents of Agent Spec may use with this configuration.
    pub fn allowed(&self) -> turnstone_specs::Reach {
        self.equipment.toolbox.reach()
    }

    /// Ends the connections, and the processes of servers.
    pub async fn close(self) {
        self.equipment.toolbox.close().await;
    }

    fn trials(&self, agent: &AgentDefinition) -> Vec<Trial> {
        let models = match agent.model.models.as_slice() {
            [] => self
                .equipment
                .providers
                .default_model_at(agent.model.provider.as_deref())
                .into_iter()
                .collect(),
            models => models.to_vec(),
        };
        // One provider is tried once, regardless of its models.
        let providers: BTreeMap<_, _> = models.iter().map(|model| (model.provider.clone(), model)).collect();
        let mut trials: Vec<Trial> =
            providers.into_values().filter_map(|model| self.provider(model)).collect();
        if models.is_empty() {
            trials.push(known("model", "none is named and no default_model is configured in [models]"));
        }
        trials.extend(agent.capabilities.iter().filter_map(|capability| self.capability(capability)));
        trials.extend(agent.toolsets.iter().map(|set| self.server(&set.server, None)));
        trials
    }

    fn provider(&self, model: &ModelRef) -> Option<Trial> {
        let Some((name, _)) = self.equipment.providers.resolve(model) else {
            let name = model.provider.as_deref().unwrap_or("default");
            return Some(known(
                &format!("provider `{name}`"),
                &format!("is not configured; add [providers.{name}]"),
            ));
        };
        let url = self.config.providers.get(name)?.http()?.base_url.clone()?;
        // An operator configured it, so it may be anywhere.
        Some(Trial::Host { what: format!("provider `{name}`"), url, private: true })
    }

    fn capability(&self, capability: &Capability) -> Option<Trial> {
        let name = capability.name.as_str();
        match &capability.target {
            Target::Remote { url } => return Some(Trial::Agent(url.clone())),
            // Only the server knows its own agents.
            Target::Agent(_) => return None,
            Target::Named => {}
        }
        let what = format!("tool `{name}`");
        if self.equipment.toolbox.is_remote(name) {
            return Some(Trial::Named(name.to_owned()));
        }
        if self.equipment.toolbox.get(name).is_some() {
            let tool = self.config.tools.get(name)?;
            return Some(Trial::Host { what, url: tool.url.clone(), private: tool.allow_private });
        }
        match capability.origin.as_ref().map(|origin| &origin.reached) {
            Some(Reached::Mcp { server }) => {
                let own = name.strip_prefix(server.as_str()).and_then(|rest| rest.strip_prefix('.'));
                Some(self.server(server, Some(own.unwrap_or(name))))
            }
            Some(Reached::Http(endpoint)) => {
                let private = self.config.tool_policy.allow_private;
                let admitted = whole_host(&endpoint.url).and_then(|url| self.config.tool_policy.admits(&url));
                Some(match admitted {
                    Ok(()) => Trial::Host { what, url: endpoint.url.clone(), private },
                    Err(why) => known(&what, &why),
                })
            }
            // Lint itself reports types that this version does not support.
            Some(Reached::Unserved { .. }) => None,
            Some(Reached::Registry) | None => Some(match self.equipment.toolbox.of_server(name) {
                Some((server, tool)) => {
                    let (server, tool) = (Arc::clone(server), Some(tool.to_owned()));
                    Trial::Server { what, server, tool }
                }
                None => Trial::Known(Missing {
                    perhaps: true,
                    message: format!(
                        "{what} is not configured here: add [tools.{name}], unless it is an agent of the server"
                    ),
                }),
            }),
        }
    }

    fn server(&self, name: &str, tool: Option<&str>) -> Trial {
        let toolbox = &self.equipment.toolbox;
        let what = format!("MCP server `{name}`");
        let found = match toolbox.server(name) {
            Some(server) => Ok(Arc::clone(server)),
            None if name.contains("://") => toolbox.declared().and_then(|declared| declared.server(name)),
            None => Err(format!("is not configured; add [mcp.{name}]")),
        };
        match found {
            Ok(server) => Trial::Server { what, server, tool: tool.map(str::to_owned) },
            Err(why) => known(&what, &why),
        }
    }

    async fn attempt(&self, trial: Trial, format: AgentFormat) -> Option<Missing> {
        let (what, tried) = match trial {
            Trial::Known(missing) => return Some(missing),
            Trial::Host { what, url, private } => (what, in_time(self.host(&url, private)).await),
            Trial::Server { what, server, tool } => {
                (what, in_time(offered(&server, tool.as_deref(), format)).await)
            }
            Trial::Agent(url) => {
                let read = async { self.equipment.toolbox.remote_agent(&url).await.map(|_| ()) };
                (format!("agent `{url}`"), in_time(read).await)
            }
            Trial::Named(name) => {
                let read = async { self.equipment.toolbox.named_agent(&name).await.map(|_| ()) };
                (format!("agent `{name}`"), in_time(read).await)
            }
        };
        let why = tried.err()?;
        Some(Missing { perhaps: false, message: format!("{what}: {why}") })
    }

    /// Succeeds if the host of a URL answers, with any status.
    async fn host(&self, url: &str, private: bool) -> Result<(), String> {
        let host = whole_host(url)?;
        if !private {
            check_url(&host)?;
        }
        let client = if private { &self.open } else { &self.guarded };
        let answer = client.head(host).timeout(PATIENCE).send().await;
        answer.map(|_| ()).map_err(|error| outbound::describe(&error))
    }
}

fn known(what: &str, why: &str) -> Trial {
    Trial::Known(Missing { perhaps: false, message: format!("{what}: {why}") })
}

async fn in_time(trial: impl Future<Output = Result<(), String>>) -> Result<(), String> {
    let late = |_| Err(format!("no answer within {} s", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, trial).await.unwrap_or_else(late)
}

/// Succeeds if a server is reachable and offers this tool.
async fn offered(server: &Arc<McpServer>, tool: Option<&str>, format: AgentFormat) -> Result<(), String> {
    let catalogue = server.catalogue().await?;
    match tool {
        Some(tool) => catalogue.named(tool, format).map(|_| ()),
        None => Ok(()),
    }
}

/// Returns the host of a URL, without the path, which may have places for arguments.
fn whole_host(url: &str) -> Result<Url, String> {
    let after_scheme = url.find("://").map_or(0, |at| at + 3);
    let rest = url.get(after_scheme..).unwrap_or_default();
    let end = rest.find(['/', '?', '#']).map_or(url.len(), |at| after_scheme + at);
    let host = url.get(..end).unwrap_or(url);
    Url::parse(host).map_err(|error| format!("`{host}` is no address: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use turnstone_domain::agent::ModelChoice;

    fn config(toml: &str) -> Config {
        let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        std::fs::write(file.path(), toml).unwrap();
        let layers = crate::config::Layers { file: Some(file.path().into()), ..Default::default() };
        layers.load().unwrap().config
    }

    /// Starts a server that answers everything with 404, and returns its port.
    async fn listening() -> u16 {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut requested = [0; 1024];
                let _ = stream.read(&mut requested).await;
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await;
            }
        });
        port
    }

    #[tokio::test]
    async fn reachable_services_pass_and_others_are_reported() {
        let port = listening().await;
        let text = format!(
            "[providers.here]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:{port}/v1'\n\
             [providers.gone]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'\n\
             [tools.open]\ndescription = 'A tool'\nurl = 'http://127.0.0.1:{port}/a'\nallow_private = true\n\
             [tools.shut]\ndescription = 'A tool'\nurl = 'http://127.0.0.1:1/'\nallow_private = true\n"
        );
        let model = |provider: &str| ModelRef { provider: Some(provider.to_owned()), model: "m".to_owned() };
        let tools = ["open", "shut", "clock", "nobody"].map(|name| Capability::named(name.to_owned()));
        let models = ["here", "gone", "none"].map(model).to_vec();
        let agent = AgentDefinition {
            model: ModelChoice { models, ..ModelChoice::default() },
            capabilities: tools.to_vec(),
            ..AgentDefinition::default()
        };
        let reach = Reach::with(config(&text)).unwrap();
        let missing = reach.missing(&agent).await;
        let says = |word: &str| missing.iter().find(|missing| missing.message.contains(word));
        assert_eq!(missing.len(), 4, "{missing:#?}");
        assert!(says("provider `gone`: cannot connect").is_some(), "{missing:#?}");
        assert!(says("provider `none`: is not configured").is_some());
        assert!(says("tool `shut`: cannot connect").is_some());
        assert!(says("tool `nobody`").unwrap().perhaps, "it may be an agent of the server");
        reach.close().await;
    }

    #[test]
    fn a_host_is_found_before_the_places_for_arguments() {
        for (url, host) in [
            ("https://a.example/x/{id}?q=1", "https://a.example/"),
            ("http://[::1]:8080/v1", "http://[::1]:8080/"),
            ("https://a.example?q={q}", "https://a.example/"),
        ] {
            assert_eq!(whole_host(url).unwrap().as_str(), host);
        }
        assert!(whole_host("nowhere").is_err());
    }
}
