//! Finds the tools that this worker can call for the agent's declarations.

use crate::model::ToolOffer;
use crate::policy::tool_rules;
use crate::state::tools::{Bound, ResolvedTool, ToolSource, timeout};
use crate::state::{Claimed, Secured};
use crate::tool::mcp::{Catalogue, McpServer, McpTool};
use crate::tool::{Tool, Toolbox};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use turnstone_domain::agent::delegation::Target;
use turnstone_domain::agent::{AgentFormat, Capability, Reached, Toolset};
use turnstone_domain::digest;

/// The reason why a capability has no tool, or none for this caller.
const NO_TOOL: &str = "no tool of this name is registered on this worker; add it to [tools]";

/// The current offers of an agent's MCP servers.
pub struct Catalogues {
    by_server: BTreeMap<String, Result<Arc<Catalogue>, String>>,
    /// Remote agents, by their addresses or by their names in the configuration.
    remote: BTreeMap<String, Result<Arc<dyn Tool>, String>>,
}

impl Catalogues {
    /// Asks the servers of all `wanted` capabilities and of the toolsets, in parallel.
    pub async fn ask(claimed: &Claimed, secured: Secured<'_>, wanted: impl Fn(&str) -> bool) -> Self {
        let toolbox = &claimed.deps.toolbox;
        let capabilities = claimed.agent.capabilities.iter().filter(|capability| wanted(&capability.name));
        let servers: BTreeMap<String, Arc<McpServer>> =
            capabilities
                .filter_map(|capability| place(toolbox, capability)?.ok())
                .map(|place| (place.key.to_owned(), place.server))
                .chain(
                    claimed.agent.toolsets.iter().filter_map(|set| {
                        Some((set.server.clone(), Arc::clone(toolbox.server(&set.server)?)))
                    }),
                )
                .collect();
        let requested = servers.into_iter().map(async |(key, server)| {
            let catalogue = server.catalogue().await;
            (key, catalogue)
        });
        let capabilities = claimed.agent.capabilities.iter().filter(|capability| wanted(&capability.name));
        let remote: BTreeSet<&str> =
            capabilities.filter_map(|capability| remote(toolbox, capability)).collect();
        let read =
            remote.into_iter().map(async |key| (key.to_owned(), agent_at(toolbox, secured, key).await));
        let (by_server, remote) =
            futures::join!(futures::future::join_all(requested), futures::future::join_all(read));
        Self { by_server: by_server.into_iter().collect(), remote: remote.into_iter().collect() }
    }

    /// Returns the parts of the servers' lists that could not be read, by the names that they would have.
    pub fn unread(&self) -> impl Iterator<Item = (String, &str)> {
        let catalogues =
            self.by_server.iter().filter_map(|(server, found)| Some((server, found.as_ref().ok()?)));
        catalogues.flat_map(|(server, catalogue)| {
            catalogue.unread().iter().map(move |(part, why)| (format!("{server}.{part}"), why.as_str()))
        })
    }

    fn of(&self, server: &str) -> Result<&Arc<Catalogue>, String> {
        match self.by_server.get(server) {
            Some(Ok(catalogue)) => Ok(catalogue),
            Some(Err(why)) => Err(format!("the MCP server `{server}` is not available: {why}")),
            None => Err(unknown_server(server)),
        }
    }

    fn tool(&self, server: &str, tool: &str, format: AgentFormat) -> Result<Arc<McpTool>, String> {
        let found = self.of(server)?.named(tool, format);
        found.cloned().map_err(|why| format!("the MCP server `{server}` cannot give it: {why}"))
    }
}

/// Returns the place of a capability's remote agent: its address, or its name among `[remote.agents]`.
fn remote<'a>(toolbox: &Toolbox, capability: &'a Capability) -> Option<&'a str> {
    match &capability.target {
        Target::Remote { url } => Some(url),
        Target::Named => Some(capability.name.as_str()).filter(|name| toolbox.is_remote(name)),
        Target::Agent(_) => None,
    }
}

async fn agent_at(toolbox: &Toolbox, _: Secured<'_>, key: &str) -> Result<Arc<dyn Tool>, String> {
    if toolbox.is_remote(key) {
        return toolbox.named_agent(key).await.map(|agent| agent as Arc<dyn Tool>);
    }
    toolbox.remote_agent(key).await.map(|agent| agent as Arc<dyn Tool>)
}

fn unknown_server(server: &str) -> String {
    format!("no MCP server `{server}` is configured on this worker; add [mcp.{server}]")
}

/// The place of an MCP tool.
struct McpToolPlace<'a> {
    /// The agent's name for the server, or its URL.
    key: &'a str,
    server: Arc<McpServer>,
    tool: &'a str,
}

/// Returns the place of a capability's MCP tool; `None` when the registry has a tool of its name, or it is no
/// MCP tool.
fn place<'a>(toolbox: &Toolbox, capability: &'a Capability) -> Option<Result<McpToolPlace<'a>, String>> {
    let name = capability.name.as_str();
    if toolbox.get(name).is_some() || toolbox.is_remote(name) {
        return None;
    }
    match capability.origin.as_ref().map(|origin| &origin.reached) {
        Some(Reached::Mcp { server: key }) => {
            let server = match toolbox.server(key) {
                Some(server) => Ok(Arc::clone(server)),
                None if key.contains("://") => toolbox.declared().and_then(|declared| declared.server(key)),
                None => Err(unknown_server(key)),
            };
            let own = name.strip_prefix(key.as_str()).and_then(|rest| rest.strip_prefix('.'));
            Some(server.map(|server| McpToolPlace { key, server, tool: own.unwrap_or(name) }))
        }
        Some(Reached::Http(_) | Reached::Unserved { .. }) => None,
        Some(Reached::Registry) | None => {
            let (server, tool) = toolbox.of_server(name)?;
            let key = &name[..name.len() - tool.len() - 1];
            Some(Ok(McpToolPlace { key, server: Arc::clone(server), tool }))
        }
    }
}

/// Finds the tool of a capability.
///
/// # Errors
/// A sentence that gives the reason why this turn does not have it.
pub async fn bind(
    claimed: &Claimed,
    capability: &Capability,
    catalogues: &Catalogues,
) -> Result<Bound, String> {
    let name = capability.name.as_str();
    let toolbox = &claimed.deps.toolbox;
    if !tool_rules::admits(claimed, capability) {
        return Err(NO_TOOL.to_owned());
    }
    if let Some(key) = remote(toolbox, capability) {
        let unknown = || Err("it was not asked for".to_owned());
        let agent = catalogues.remote.get(key).cloned().unwrap_or_else(unknown)?;
        return bound(claimed, agent, capability, ToolSource::Delegation { agent_id: key.to_owned() }).await;
    }
    let index = capability.origin.as_ref().map(|origin| origin.tool_index);
    if let Some(tool) = toolbox.get(name) {
        let source = match index {
            Some(tool_index) => ToolSource::Manifest { tool_index },
            None => ToolSource::Function { handler: name.to_owned() },
        };
        return bound(claimed, Arc::clone(tool), capability, source).await;
    }
    if let Some(place) = place(toolbox, capability) {
        let place = place?;
        let tool = catalogues.tool(place.key, place.tool, claimed.agent.format)?;
        let source = of_server(&tool);
        return bound(claimed, tool, capability, source).await;
    }
    match capability.origin.as_ref().map(|origin| (&origin.reached, origin.tool_index)) {
        Some((Reached::Http(endpoint), tool_index)) => {
            let tool = toolbox.declared()?.tool(capability, endpoint)?;
            bound(claimed, tool, capability, ToolSource::Manifest { tool_index }).await
        }
        Some((Reached::Unserved { kind }, _)) => Err(format!(
            "tools of type {kind} are not served; put what serves it over HTTP into [tools.{name}]"
        )),
        _ => Err(NO_TOOL.to_owned()),
    }
}

/// Finds all tools of a server, in the order of their names.
pub async fn bind_all(
    claimed: &Claimed,
    set: &Toolset,
    catalogues: &Catalogues,
) -> Vec<(String, Result<Bound, String>)> {
    let name = |tool: &str| format!("{}.{tool}", set.server);
    match catalogues.of(&set.server) {
        Err(why) => vec![(name("*"), Err(why))],
        Ok(catalogue) => {
            let mut offered = Vec::new();
            for (tool, found) in catalogue.tools() {
                let capability = set.capability(name(tool));
                if !tool_rules::admits(claimed, &capability) {
                    continue;
                }
                let known = Arc::clone(found) as Arc<dyn Tool>;
                let bound = bound(claimed, known, &capability, of_server(found)).await;
                offered.push((
                    name(tool),
                    bound.map(|bound| Bound { own: bound.own.or(Some(Box::new(capability))), ..bound }),
                ));
            }
            offered.extend(catalogue.withheld().iter().map(|(tool, why)| (name(tool), Err(why.clone()))));
            offered
        }
    }
}

fn of_server(tool: &McpTool) -> ToolSource {
    ToolSource::Mcp { server_uri: tool.server_uri().to_owned(), capability: tool.remote().to_owned() }
}

async fn bound(
    claimed: &Claimed,
    tool: Arc<dyn Tool>,
    capability: &Capability,
    source: ToolSource,
) -> Result<Bound, String> {
    let offer = offer(&*tool, capability);
    claimed.deps.prepare(&offer.input_schema).await?;
    claimed.deps.prepare(&tool.spec().input_schema).await?;
    if let Some(schema) = &capability.output_schema {
        claimed.deps.prepare(schema).await?;
    }
    let record = ResolvedTool {
        name: offer.name,
        source,
        transport: tool.transport(),
        timeout_ms: u64::try_from(timeout(&*tool, capability).as_millis()).unwrap_or(u64::MAX),
        retry_policy: capability.errors.retry.clone().or_else(|| claimed.agent.errors.retry.clone()),
        digest: digest::of_json(&serde_json::json!([offer.description, offer.input_schema])),
    };
    let unnamed = || claimed.agent.capability(&capability.name).is_none().then(|| capability.clone());
    let own = tool_rules::added(&claimed.deps.toolbox, capability).or_else(unnamed).map(Box::new);
    Ok(Bound { tool, record, own })
}

/// Binds a tool that the document brings along.
///
/// # Errors
/// A sentence that says why its schema cannot be used.
pub async fn declared(
    claimed: &Claimed,
    tool: Arc<dyn Tool>,
    capability: &Capability,
) -> Result<Bound, String> {
    let bound = bound(claimed, tool, capability, ToolSource::Manifest { tool_index: 0 }).await?;
    // The rules of the configuration are about its own tools.
    let own = claimed.agent.capability(&capability.name).is_none().then(|| Box::new(capability.clone()));
    Ok(Bound { own, ..bound })
}

/// Returns a tool as it is described to the model.
pub fn offer(tool: &dyn Tool, capability: &Capability) -> ToolOffer {
    let spec = tool.spec();
    ToolOffer {
        name: capability.name.clone(),
        description: capability.description.clone().unwrap_or_else(|| spec.description.clone()),
        input_schema: capability.input_schema.clone().unwrap_or_else(|| spec.input_schema.clone()),
    }
}
