//! The agent that runs a node: the flow's own name and limits, with the model or the tool of the node.

use std::sync::Arc;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::errors::{ErrorPolicy, RetryRule};
use turnstone_domain::agent::{Capability, ModelChoice, ModelRef, OutputContract, OutputFormat, Restriction};
use turnstone_specs::agent_spec::model::{LlmConfig, Node, NodeKind, Tool, ToolKind};

/// The agent of a node.
pub fn of(root: &Arc<AgentDefinition>, node: &Node) -> AgentDefinition {
    let mut agent = AgentDefinition {
        name: root.name.clone(),
        format: root.format,
        description: root.description.clone(),
        limits: root.limits.clone(),
        spending: root.spending.clone(),
        identity: root.identity,
        // The specification knows no retries but those of requests.
        errors: ErrorPolicy {
            retry: Some(RetryRule { retries: Some(0), ..RetryRule::default() }),
            ..ErrorPolicy::default()
        },
        ..AgentDefinition::default()
    };
    match &node.kind {
        NodeKind::LlmNode { llm_config, .. } => {
            agent.model = model(llm_config);
            if !super::answer::is_text(&node.outputs) {
                let schema = Some(super::answer::schema(&node.outputs));
                agent.output = OutputContract { schema, format: OutputFormat::Json };
            }
        }
        NodeKind::ToolNode(tool) => agent.capabilities.extend(capability(tool)),
        _ => {}
    }
    agent
}

fn model(config: &LlmConfig) -> ModelChoice {
    let number =
        |name: &str| config.default_generation_parameters.get(name).and_then(serde_json::Value::as_f64);
    let whole =
        |name: &str| config.default_generation_parameters.get(name).and_then(serde_json::Value::as_i64);
    ModelChoice {
        models: vec![ModelRef { provider: None, model: config.model_id.clone() }],
        temperature: number("temperature"),
        top_p: number("top_p"),
        max_tokens: whole("max_tokens"),
        ..ModelChoice::default()
    }
}

/// What holds for the calls of a tool; `None` for one that the client executes.
fn capability(tool: &Tool) -> Option<Capability> {
    let asks = tool.requires_confirmation.then(|| crate::turn::reviewers::OPERATOR.to_owned());
    let input_restriction = Restriction { require_review: asks, ..Restriction::default() };
    match tool.kind {
        ToolKind::ServerTool | ToolKind::RemoteTool(_) => {
            Some(Capability { input_restriction, ..Capability::named(tool.head.name.clone()) })
        }
        _ => None,
    }
}
