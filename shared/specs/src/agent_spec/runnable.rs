//! Documents that can be run: flows whose components all have a runtime here.

use super::component::{Component, Held};
use super::export::{export, secret_id};
use super::model::{self, AgenticComponent, Flow, NodeKind, StdioProgram};
use super::program::ProgramRefusal;
use super::{Registry, Specification, read};
use crate::problem::{Problem, Problems, Severity};
use crate::{AddressCheck, Names, Reach};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::{AgentFormat, FlowDocument, Limits, Memory};

/// The most nodes that one run executes, a node in a loop counted each time.
pub const MAX_NODE_RUNS: u32 = 10_000;

/// The most messages of a conversation that an agent sees, the newest ones.
pub const MAX_MESSAGES: u32 = 1000;

/// The classes that can be run.
const RUNNABLE: [&str; 50] = [
    "OciAgent",
    "OciGenAiConfig",
    "OciClientConfigWithApiKey",
    "OciClientConfigWithSecurityToken",
    "GeminiVertexAIAuthConfig",
    "SSEmTLSTransport",
    "StreamableHTTPmTLSTransport",
    "A2AAgent",
    "A2AConnectionConfig",
    "Agent",
    "SpecializedAgent",
    "AgentSpecializationParameters",
    "Swarm",
    "ManagerWorkers",
    "AgentNode",
    "MCPTool",
    "MCPToolBox",
    "MCPToolSpec",
    "StdioTransport",
    "SSETransport",
    "StreamableHTTPTransport",
    "MessageSummarizationTransform",
    "ConversationSummarizationTransform",
    "InMemoryCollectionDatastore",
    "OpenAiConfig",
    "LlmConfig",
    "GeminiConfig",
    "GeminiAIStudioAuthConfig",
    "Flow",
    "StartNode",
    "EndNode",
    "LlmNode",
    "ToolNode",
    "BranchingNode",
    "FlowNode",
    "MapNode",
    "ParallelMapNode",
    "ParallelFlowNode",
    "CatchExceptionNode",
    "ApiNode",
    "InputMessageNode",
    "OutputMessageNode",
    "ControlFlowEdge",
    "DataFlowEdge",
    "ServerTool",
    "ClientTool",
    "RemoteTool",
    "OpenAiCompatibleConfig",
    "VllmConfig",
    "OllamaConfig",
];

/// Reads a flow, an agent or a team as an agent. `names` holds the tools of this server, when they are known.
///
/// # Errors
/// Every problem found, in document order: those of [`read`], and three kinds of its own. AS-00 is for each component
/// that this version cannot run, AS-19 for a secret that no registry gives, and AS-59 for a tool that the server lacks.
pub fn agent(
    source: &str,
    registry: &Registry,
    names: Option<&Names<'_>>,
) -> Result<(AgentDefinition, Vec<Problem>), Vec<Problem>> {
    let mut problems = Problems::default();
    let (specification, warnings) = read(source, registry)?;
    let Some(flow) = specification.flow() else {
        let message =
            format!("{} is no agent, team or flow, so it cannot be run alone", specification.root.shown());
        problems.error(specification.root.at, "AS-00", message);
        return Err(problems.in_order());
    };
    check(&specification.root, names, &mut problems);
    if let Some(reach) = names.and_then(|names| names.reach) {
        check_reached(&specification.root, reach, &mut problems);
    }
    if problems.any_error() {
        return Err(problems.in_order());
    }
    let document = export(&specification).to_string();
    let values = secrets(&specification.root);
    let agent = AgentDefinition {
        name: name_of(&flow.head.name),
        format: AgentFormat::AgentSpec,
        description: flow.head.description.clone().unwrap_or_default(),
        limits: Limits { max_turns: MAX_NODE_RUNS, ..Limits::default() },
        memory: Memory { window_size: MAX_MESSAGES, ..Memory::default() },
        flow: Some(FlowDocument::new(document, values)),
        ..AgentDefinition::default()
    };
    Ok((agent, warnings))
}

/// Returns the flow of an agent.
///
/// # Errors
/// A sentence: the document was stored by a version of this program that reads it otherwise.
fn flow(stored: &FlowDocument) -> Result<Arc<Flow>, String> {
    let registry = stored
        .values()
        .iter()
        .fold(Registry::default(), |registry, (id, value)| registry.with_value(id, value));
    let read = read(stored.document(), &registry);
    let first = |problems: Vec<Problem>| {
        let error = problems.iter().find(|problem| problem.severity == Severity::Error);
        error.map_or_else(|| "it cannot be read".to_owned(), ToString::to_string)
    };
    let (specification, _) = read.map_err(first)?;
    let whole = specification.flow().ok_or_else(|| "it is no flow".to_owned())?;
    match stored.part() {
        None => Ok(whole),
        Some(id) => part(&whole, id).ok_or_else(|| format!("it has no flow of the id `{id}`")),
    }
}

/// Returns the flow with this id inside another one.
fn part(of: &Flow, id: &str) -> Option<Arc<Flow>> {
    let found = |flow: &Arc<Flow>| if flow.head.id == id { Some(Arc::clone(flow)) } else { part(flow, id) };
    of.nodes.iter().find_map(|node| match &node.kind {
        NodeKind::FlowNode(flow)
        | NodeKind::CatchExceptionNode(flow)
        | NodeKind::AgentNode(AgenticComponent::Flow(flow))
        | NodeKind::MapNode { subflow: flow, .. }
        | NodeKind::ParallelMapNode { subflow: flow, .. } => found(flow),
        NodeKind::ParallelFlowNode(flows) => flows.iter().find_map(found),
        _ => None,
    })
}

/// Returns the document of an agent as it may be shown: as it was written, or its canonical form when it
/// holds a secret or was read with parts.
#[must_use]
pub fn shown(source: String, agent: &AgentDefinition, warnings: &[Problem], has_parts: bool) -> String {
    let holds_secret = warnings.iter().any(|warning| warning.rule == "AS-18");
    match &agent.flow {
        Some(flow) if has_parts || holds_secret => flow.document().to_owned(),
        _ => source,
    }
}

/// The most flows that are kept. When there are more, all are forgotten, and are read again when they are used.
const KEPT: usize = 256;

/// The computed digest of a document, and the id of the flow in it.
type PartOf = (String, Option<String>);

/// The flows that were used lately, by their digests.
#[derive(Default)]
pub struct Flows {
    known: Mutex<HashMap<PartOf, Arc<Flow>>>,
}

impl Flows {
    /// Returns the flow of an agent, read once.
    ///
    /// # Errors
    /// A sentence: the document was stored by a version of this program that reads it otherwise.
    pub fn get(&self, document: &FlowDocument) -> Result<Arc<Flow>, String> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (document.digest().to_owned(), document.part().map(str::to_owned));
        if let Some(flow) = known().get(&key) {
            return Ok(Arc::clone(flow));
        }
        let flow = flow(document)?;
        let mut known = known();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key, Arc::clone(&flow));
        Ok(flow)
    }
}

impl Specification {
    /// Returns the flow that the document is, or the flow that was made around its agent.
    fn flow(&self) -> Option<Arc<Flow>> {
        match &self.component {
            model::Component::AgenticComponent(AgenticComponent::Flow(flow)) => Some(Arc::clone(flow)),
            model::Component::AgenticComponent(agent) => Some(Arc::new(Flow::around(agent.clone()))),
            _ => None,
        }
    }
}

/// Reports what cannot be run, each component once.
fn check(root: &Arc<Component>, names: Option<&Names<'_>>, problems: &mut Problems) {
    let (mut waiting, mut seen) = (vec![root], HashSet::new());
    while let Some(component) = waiting.pop() {
        if !seen.insert(component.id.as_str()) {
            continue;
        }
        waiting.extend(component.children());
        let class = component.class.name;
        if class == "BuiltinTool" {
            let kind = crate::shape::shortened(&component.text("tool_type"));
            let message = format!(
                "{} is a tool `{kind}` of another runtime; declare a ServerTool, RemoteTool or MCPTool instead",
                component.shown()
            );
            problems.error(component.at, "AS-00", message);
        } else if !RUNNABLE.contains(&class) {
            problems.error(
                component.at,
                "AS-00",
                format!("{} cannot be run: {}", component.shown(), reason(class)),
            );
        }
        check_members(component, problems);
        if class == "RemoteTool" || class == "ApiNode" {
            check_origin(component, problems);
        }
        if class == "Agent" || class == "AgentSpecializationParameters" {
            refuse_tools(component, &[SUBMIT], problems);
        }
        let lacks = |names: &&Names<'_>| !names.open && !names.may_have_tool(&component.name);
        if class == "ServerTool" && names.is_some_and(|names| lacks(&names)) {
            let name = crate::shape::shortened(&component.name);
            let message = format!("{} is no tool of this server; add [tools.{name}]", component.shown());
            problems.error(component.at, "AS-59", message);
        }
        if class == "A2AConnectionConfig" && component.value("verify") == false {
            let message = format!("{}: certificates are always checked; remove `verify`", component.shown());
            problems.error(component.place("verify"), "AS-00", message);
        }
        if component.optional_text("conversation_store_id").is_some() {
            let message = format!("{}: conversations are kept here; remove it", component.shown());
            problems.error(component.place("conversation_store_id"), "AS-00", message);
        }
        if class == "GeminiVertexAIAuthConfig" && component.secret("credentials").is_none() {
            let message = format!("{} needs the `credentials` of a service account", component.shown());
            problems.error(component.at, "AS-00", message);
        }
        if let Some(api) = component.optional_text("api_type").filter(|api| {
            class != "OciGenAiConfig" && !["chat_completions", "responses"].contains(&api.as_str())
        }) {
            let message = format!("{}: `api_type` `{api}` cannot be used yet", component.shown());
            problems.error(component.place("api_type"), "AS-00", message);
        }
        for (field, held) in &component.held {
            if let Held::Secret(secret) = held
                && secret.reveal().is_none()
            {
                let id = secret_id(secret, component, field);
                let message = format!(
                    "{}: `{field}` refers to `{id}`, which the registry does not give; register the document with it",
                    component.shown()
                );
                problems.error(component.place(field), "AS-19", message);
            }
        }
    }
}

/// Reports the programs and addresses of a document that the operator does not allow, each component once.
pub fn check_reached(root: &Arc<Component>, reach: &Reach, problems: &mut Problems) {
    let (mut waiting, mut seen) = (vec![root], HashSet::new());
    while let Some(component) = waiting.pop() {
        if seen.insert(component.id.as_str()) {
            waiting.extend(component.children());
            check_reach(component, reach, problems);
        }
    }
}

/// The fields with addresses.
const ADDRESSES: [&str; 3] = ["url", "agent_url", "service_endpoint"];

/// Checks that the operator allows the programs and private addresses of a component (AS-60).
fn check_reach(component: &Component, reach: &Reach, problems: &mut Problems) {
    let refused =
        |field: &str, what: String| (component.place(field), format!("{} {what}", component.shown()));
    if component.class.name == "StdioTransport" {
        let admitted = reach.commands.admit(&StdioProgram::of(component));
        for ProgramRefusal { field, why } in admitted.err().unwrap_or_default() {
            let (at, message) = refused(field, why);
            problems.error(at, "AS-60", message);
        }
    }
    for field in ADDRESSES {
        let Some(url) = component.optional_text(field) else { continue };
        if !reach.private && is_private(&url) {
            let what =
                format!("names a private address in `{field}`, and [tool_policy] has no `allow_private`");
            let (at, message) = refused(field, what);
            problems.error(at, "AS-60", message);
        } else if let Some(Err(why)) = reach.addresses.as_ref().map(|known| check_address(&url, &**known)) {
            let what = format!("is not called with this server's settings: {why}");
            let (at, message) = refused(field, what);
            problems.warning(at, "AS-60", message);
        }
    }
}

/// Checks an address that names its host. Without a scheme it is that of a server without TLS.
fn check_address(url: &str, addresses: &dyn AddressCheck) -> Result<(), String> {
    let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
    let origin = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if scheme.contains("{{") || origin.contains("{{") {
        return Ok(());
    }
    addresses.check_address(&format!("{scheme}://{rest}"))
}

/// Checks that a placeholder in the scheme, host or port of a request is bounded by a list of addresses (AS-61).
fn check_origin(request: &Component, problems: &mut Problems) {
    let url = request.text("url");
    let (scheme, rest) = url.split_once("://").unwrap_or(("", &url));
    let origin = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if (scheme.contains("{{") || origin.contains("{{")) && !request.value("url_allow_list").is_array() {
        let message = format!(
            "{}: a placeholder stands for the scheme, host or port of `url`; add `url_allow_list` with the addresses that it \
             may be",
            request.shown()
        );
        problems.error(request.place("url"), "AS-61", message);
    }
}

/// Returns true if the host of an address is this machine or one of a private network. Names are resolved by the worker,
/// which checks them again.
fn is_private(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => {
            ip.is_private() || ip.is_loopback() || ip.is_link_local() || ip.is_unspecified()
        }
        Ok(IpAddr::V6(ip)) => {
            ip.is_loopback() || ip.is_unspecified() || ip.is_unique_local() || ip.is_unicast_link_local()
        }
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

/// Returns the reason why no component of a class is run.
fn reason(class: &str) -> &'static str {
    match class {
        "OciClientConfigWithInstancePrincipal" | "OciClientConfigWithResourcePrincipal" => {
            "it takes its identity from a machine of Oracle's cloud; use an API key or a security token"
        }
        "OAuthConfig" | "OAuthClientConfig" => {
            "its tokens need a user with a browser; send a token in `sensitive_headers` instead"
        }
        "DbmsVectorChainLlmConfig" => "an Oracle database calls this model; name the model itself",
        "OracleDatabaseDatastore" | "PostgresDatabaseDatastore" => {
            "summaries are stored with the engagement; use an InMemoryCollectionDatastore"
        }
        _ => "no runtime for it exists here",
    }
}

/// The tool by which an agent returns its outputs.
pub const SUBMIT: &str = "submit_result";
/// The tool by which an agent of a team asks another one.
pub const SEND: &str = "send_message";
/// The tool by which an agent of a Swarm hands the conversation over.
pub const HAND_OVER: &str = "handoff_conversation";

/// Refuses tools of an agent with one of these names, because the runtime adds tools of these names (AS-53).
fn refuse_tools(agent: &Component, names: &[&str], problems: &mut Problems) {
    for tool in agent.many("tools").iter().chain(agent.many("additional_tools")) {
        if names.contains(&tool.name.replace(' ', "_").as_str()) {
            let message = format!(
                "{} has the name of a tool by which {} controls its run; choose another name",
                tool.shown(),
                agent.shown()
            );
            problems.error(tool.place("name"), "AS-53", message);
        }
    }
}

/// Checks that the members of a team are agents, each with a name of its own.
fn check_members(team: &Component, problems: &mut Problems) {
    let (members, field): (Vec<&Arc<Component>>, _) = match team.class.name {
        "Swarm" => {
            let pairs = team.pairs("relationships").iter().flat_map(|(from, to)| [from, to]);
            (team.one("first_agent").into_iter().chain(pairs).collect(), "relationships")
        }
        "ManagerWorkers" => {
            (team.one("group_manager").into_iter().chain(team.many("workers")).collect(), "workers")
        }
        _ => return,
    };
    let mut names: HashMap<&str, &str> = HashMap::new();
    for member in members {
        let parts =
            ["agent", "agent_specialization_parameters"].into_iter().filter_map(|field| member.one(field));
        std::iter::once(member)
            .chain(parts)
            .for_each(|part| refuse_tools(part, &[SEND, HAND_OVER], problems));
        if !matches!(member.class.name, "Agent" | "SpecializedAgent" | "A2AAgent" | "OciAgent") {
            let message = format!("{} cannot be a member of a team yet; only agents can", member.shown());
            problems.error(team.place(field), "AS-00", message);
        }
        if *names.entry(&member.name).or_insert(&member.id) != member.id.as_str() {
            let message = format!(
                "{}: two members have the name `{}`, by which they are addressed",
                team.shown(),
                crate::shape::shortened(&member.name)
            );
            problems.error(team.place(field), "AS-00", message);
        }
    }
}

/// Returns the secrets by the ids of their references.
fn secrets(root: &Arc<Component>) -> BTreeMap<String, Value> {
    let mut values = BTreeMap::new();
    let (mut waiting, mut seen) = (vec![root], HashSet::new());
    while let Some(component) = waiting.pop() {
        if !seen.insert(component.id.as_str()) {
            continue;
        }
        waiting.extend(component.children());
        for (field, held) in &component.held {
            if let Held::Secret(secret) = held
                && let Some(value) = secret.reveal()
            {
                values.insert(secret_id(secret, component, field), value.clone());
            }
        }
    }
    values
}

/// Returns the name of an agent for the name of a component, which may be any text.
fn name_of(name: &str) -> String {
    let lower = name.to_lowercase();
    let kept = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(253);
    let parted: String = kept.collect();
    let name = parted.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    if name.is_empty() { "flow".to_owned() } else { name }
}
