//! The tools that a document of Agent Spec brings along: requests, tools of the client, and those of MCP servers.

use super::answer::schema as arguments;
use super::failed;
use super::run::FlowRun;
use crate::policy::reviewers::OPERATOR;
use crate::state::{Claimed, Secured, Stop};
use crate::tool::mcp::McpTool;
use crate::tool::request::RequestTool;
use crate::tool::uncalled::Uncalled;
use crate::tool::{NamedTool, Tool};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use turnstone_domain::JobError;
use turnstone_domain::agent::{Capability, Restriction, ToolSpec};
use turnstone_domain::error::FailureKind;
use turnstone_domain::question::{self, ClientCall};
use turnstone_specs::agent_spec::model::{
    ClientTransport, MCPToolBox, MCPToolSpec, NodeKind, Tool as DeclaredTool, ToolFilter, ToolKind,
};
use turnstone_specs::agent_spec::{Property, Type};

/// The key under which a client returns the result of its tool.
pub const RESULT: &str = "result";

/// A tool of the document with the rules for its calls.
pub struct Declared {
    /// The rules.
    pub capability: Capability,
    /// The tool.
    pub tool: Arc<dyn Tool>,
}

/// Returns the tools that the document of the turn brings along, except those of the server.
///
/// # Errors
/// [`Stop::Fail`] when one may not be used by this worker, a server does not answer, or its tools are not those that
/// the document expects.
pub async fn declared(
    claimed: &Claimed,
    flow: Option<&FlowRun>,
    secured: Secured<'_>,
) -> Result<Vec<Declared>, Stop> {
    let Some(run) = flow else { return Ok(Vec::new()) };
    if let Some((name, tool)) = of_node(claimed, run, secured).await? {
        let own = claimed.agent.capability(&name).cloned();
        let capability = own.unwrap_or_else(|| Capability::named(name));
        return Ok(vec![Declared { capability, tool }]);
    }
    let crew = run.crew.as_ref();
    let Some(agent) = crew.and_then(|crew| crew.team.agent()) else { return Ok(Vec::new()) };
    let own = agent.tools.iter().filter(|tool| !is_server_tool(tool)).map(async |tool| {
        Ok(Declared { capability: capability(tool), tool: made(claimed, secured, tool).await? })
    });
    let toolboxes = agent.toolboxes.iter().map(|toolbox| of_toolbox(claimed, secured, toolbox));
    // All servers start at the same time.
    let (own, of_toolboxes) =
        futures::join!(futures::future::join_all(own), futures::future::join_all(toolboxes));
    let mut found = own.into_iter().collect::<Result<Vec<_>, Stop>>()?;
    for tools in of_toolboxes {
        found.extend(tools?);
    }
    let mut named = BTreeSet::new();
    for one in &found {
        if !named.insert(&one.capability.name) {
            let why = format!("the agent has two tools of the name `{}`", one.capability.name);
            return Err(failed(&why).into());
        }
        if super::controls(crew, &one.capability.name) {
            let why = format!(
                "a toolbox of the agent has the tool `{}`, the name of one that controls its run; leave it out by `tool_filter`",
                one.capability.name
            );
            return Err(failed(&why).into());
        }
    }
    Ok(found)
}

/// Returns true if a tool is one of this server or of the model's, and not of the document.
fn is_server_tool(tool: &DeclaredTool) -> bool {
    matches!(tool.kind, ToolKind::ServerTool | ToolKind::BuiltinTool { .. })
}

/// The tool of a node that calls one.
async fn of_node(claimed: &Claimed, run: &FlowRun, secured: Secured<'_>) -> Result<Option<NamedTool>, Stop> {
    let Some(current) = &run.node else { return Ok(None) };
    let declared = || claimed.deps.toolbox.declared().map_err(|why| failed(&why));
    if let Some((agent, _)) = run.crew.as_ref().and_then(|crew| crew.team.remote(crew.base.as_deref())) {
        let made = declared()?.agent(agent).map_err(|why| failed(&why))?;
        return Ok(Some((agent.head().name.clone(), made)));
    }
    match &current.node.kind {
        NodeKind::ApiNode(request) => {
            let name = current.node.head.name.clone();
            let made = RequestTool::new(&name, request, true, Arc::clone(declared()?));
            Ok(Some((name, Arc::new(made))))
        }
        NodeKind::ToolNode(tool)
            if matches!(tool.kind, ToolKind::RemoteTool(_) | ToolKind::MCPTool { .. }) =>
        {
            Ok(Some((tool.head.name.clone(), made(claimed, secured, tool).await?)))
        }
        _ => Ok(None),
    }
}

async fn made(claimed: &Claimed, secured: Secured<'_>, tool: &DeclaredTool) -> Result<Arc<dyn Tool>, Stop> {
    let name = &tool.head.name;
    match &tool.kind {
        ToolKind::RemoteTool(request) => {
            let declared = claimed.deps.toolbox.declared().map_err(|why| failed(&why))?;
            Ok(Arc::new(RequestTool::new(name, request, false, Arc::clone(declared))))
        }
        ToolKind::MCPTool { client_transport, .. } => {
            let offered = offered(claimed, secured, client_transport).await?;
            match offered.get(name) {
                Some(found) => Ok(Arc::clone(found) as Arc<dyn Tool>),
                None => Err(failed(&format!("the MCP server has no tool `{name}`")).into()),
            }
        }
        _ => {
            let description = tool.head.description.clone().unwrap_or_default();
            let input_schema = arguments(&tool.inputs);
            let spec = ToolSpec { name: name.clone(), description, input_schema, idempotent: true };
            Ok(Arc::new(Uncalled::asking(spec, "the client executes this tool")))
        }
    }
}

/// The current tools of an MCP server, by its names.
async fn offered(
    claimed: &Claimed,
    _: Secured<'_>,
    transport: &ClientTransport,
) -> Result<BTreeMap<String, Arc<McpTool>>, Stop> {
    let declared = claimed.deps.toolbox.declared();
    let server = declared.and_then(|declared| declared.transport(transport)).map_err(|why| failed(&why))?;
    let catalogue = server.catalogue().await.map_err(|why| {
        JobError::new(
            FailureKind::Tool,
            format!("the MCP server `{}` is not available: {why}", transport.head.name),
        )
    })?;
    Ok(catalogue.tools().map(|(name, tool)| (name.to_owned(), Arc::clone(tool))).collect())
}

/// The tools of a toolbox that pass its filter.
async fn of_toolbox(
    claimed: &Claimed,
    secured: Secured<'_>,
    toolbox: &MCPToolBox,
) -> Result<Vec<Declared>, Stop> {
    if toolbox.tool_filter.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Vec::new());
    }
    let offered = offered(claimed, secured, &toolbox.client_transport).await?;
    let with = |name: &str, tool: &Arc<McpTool>, spec: Option<&MCPToolSpec>| {
        let confirmed = toolbox.requires_confirmation || spec.is_some_and(|spec| spec.requires_confirmation);
        let capability = Capability {
            description: spec.and_then(|spec| spec.head.description.clone()),
            input_restriction: confirmation(confirmed),
            ..Capability::named(name)
        };
        Declared { capability, tool: Arc::clone(tool) as Arc<dyn Tool> }
    };
    let Some(filter) = &toolbox.tool_filter else {
        return Ok(offered.iter().map(|(name, tool)| with(name, tool, None)).collect());
    };
    let one = |filter: &ToolFilter| {
        let (name, spec) = match filter {
            ToolFilter::Name(name) => (name, None),
            ToolFilter::Spec(spec) => (&spec.head.name, Some(spec)),
        };
        let about = |why: String| format!("toolbox `{}`: {why}", toolbox.head.name);
        let tool = offered.get(name).ok_or_else(|| about(format!("the MCP server has no tool `{name}`")))?;
        if let Some(inputs) = spec.and_then(|spec| spec.inputs.as_ref()) {
            fits(inputs, &tool.spec().input_schema).map_err(|why| about(format!("tool `{name}`: {why}")))?;
        }
        Ok(with(name, tool, spec))
    };
    let found: Result<Vec<_>, String> = filter.iter().map(one).collect();
    found.map_err(|why| failed(&why).into())
}

/// Checks that the arguments of a server's tool are those that the document expects.
fn fits(expected: &[Property], schema: &Value) -> Result<(), String> {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    if let Some(missing) = expected.iter().find(|input| !properties.contains_key(&input.title)) {
        return Err(format!("the server's tool has no argument `{}`", missing.title));
    }
    if let Some(surplus) = properties.keys().find(|name| !expected.iter().any(|input| input.title == **name))
    {
        return Err(format!(
            "the server's tool has the argument `{surplus}`, which the document does not expect"
        ));
    }
    let differs = |input: &&Property| {
        let offered = Type::of(&properties[&input.title]).unwrap_or(Type::Any);
        offered != Type::Any && offered != input.r#type
    };
    match expected.iter().find(differs) {
        Some(input) => Err(format!("the argument `{}` has another type at the server", input.title)),
        None => Ok(()),
    }
}

/// The rules for the calls of a tool: the document's texts, and the confirmation that it requires.
pub fn capability(tool: &DeclaredTool) -> Capability {
    let described = tool.head.description.clone().filter(|text| !text.is_empty());
    let is_bare = matches!(tool.kind, ToolKind::MCPTool { .. }) && tool.inputs.is_empty();
    Capability {
        description: described,
        input_schema: (!is_bare).then(|| arguments(&tool.inputs)),
        input_restriction: confirmation(tool.requires_confirmation),
        ..Capability::named(tool.head.name.clone())
    }
}

fn confirmation(required: bool) -> Restriction {
    Restriction { require_review: required.then(|| OPERATOR.to_owned()), ..Restriction::default() }
}

/// The question that makes the client execute a tool: its name and arguments, and the schemas of its outputs.
pub fn to_client(tool: &DeclaredTool, inputs: &Value) -> Value {
    let result = format!("the result of the tool `{}`", tool.head.name);
    json!(ClientCall {
        request_keys: [(RESULT.to_owned(), result.into())].into_iter().collect(),
        tool: tool.head.name.clone(),
        arguments: inputs.clone(),
        returns: tool.outputs.iter().map(|output| output.schema.clone()).collect(),
    })
}

/// The name of calls that wait for an answer from outside.
pub const ASK: &str = question::TOOLS[0];
