//! The agent that runs a node: the flow's own name and limits, with the model or the tool of the node.

use super::run::Crew;
use super::template::render;
use super::tools::capability;
use crate::model::declared::BOUNDS;
use serde_json::Value;
use std::sync::Arc;
use turnstone_domain::AgentDefinition;
use turnstone_domain::agent::errors::{ErrorPolicy, RetryRule};
use turnstone_domain::agent::{Capability, ModelChoice, ModelRef, OutputContract, OutputFormat};
use turnstone_specs::agent_spec::model::{LlmConfig, LlmKind, Node, NodeKind, RetryPolicy, ToolKind};

/// The agent whose turn it is among the agents of a node.
pub fn of_crew(root: &Arc<AgentDefinition>, crew: &Crew) -> AgentDefinition {
    let Some(own) = crew.team.agent() else {
        let mut agent = bare(root);
        agent.capabilities.push(Capability::named(crew.team.who().head().name.clone()));
        return agent;
    };
    let mut inputs = crew.inputs.clone();
    for input in &own.inputs {
        if let (None, Some(default)) = (inputs.get(&input.title), &input.default) {
            inputs.insert(input.title.clone(), default.clone());
        }
    }
    let mut agent = bare(root);
    agent.instructions = render(&own.system_prompt, &inputs);
    agent.capabilities = own.tools.iter().map(|tool| capability(tool)).collect();
    with_model(&mut agent, &own.llm_config);
    agent
}

/// The agent of a node.
pub fn of(root: &Arc<AgentDefinition>, node: &Node) -> AgentDefinition {
    let mut agent = bare(root);
    match &node.kind {
        NodeKind::LlmNode { llm_config, .. } => {
            with_model(&mut agent, llm_config);
            if !super::answer::is_text(&node.outputs) {
                let schema = Some(super::answer::schema(&node.outputs));
                agent.output = OutputContract { schema, format: OutputFormat::Json };
            }
        }
        // The client executes the others, and EXEC asks for their confirmation.
        NodeKind::ToolNode(tool) if !matches!(tool.kind, ToolKind::ClientTool) => {
            let Capability { name, input_restriction, .. } = capability(tool);
            agent.capabilities.push(Capability { input_restriction, ..Capability::named(name) });
        }
        _ => {}
    }
    agent
}

/// An agent without model and tools, under the limits of the whole flow, and under the checks of an agent that calls the flow.
fn bare(root: &Arc<AgentDefinition>) -> AgentDefinition {
    AgentDefinition {
        name: root.name.clone(),
        format: root.format,
        description: root.description.clone(),
        limits: root.limits.clone(),
        memory: root.memory.clone(),
        spending: root.spending.clone(),
        identity: root.identity,
        safety: root.safety.clone(),
        guardrails: root.guardrails.clone(),
        // The specification knows no retries but those of requests.
        errors: ErrorPolicy {
            retry: Some(RetryRule { retries: Some(0), ..RetryRule::default() }),
            ..ErrorPolicy::default()
        },
        ..AgentDefinition::default()
    }
}

pub fn with_model(agent: &mut AgentDefinition, config: &LlmConfig) {
    agent.model = model(config);
    agent.errors.model_retry = config.retry_policy.as_ref().map(retries);
}

/// The retries of model calls that a document asks for. Without a policy, the job's own applies.
fn retries(policy: &RetryPolicy) -> RetryRule {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds of a document, checked"
    )]
    let ms = |seconds: f64| (seconds * 1000.0).clamp(0.0, 3_600_000.0) as u64;
    RetryRule {
        retries: Some(u32::try_from(policy.max_attempts).unwrap_or(u32::MAX)),
        initial_delay_ms: ms(policy.initial_retry_delay),
        max_delay_ms: ms(policy.max_retry_delay),
        ..RetryRule::default()
    }
}

fn model(config: &LlmConfig) -> ModelChoice {
    let number = |name: &str| config.default_generation_parameters.get(name).and_then(Value::as_f64);
    let whole = |name: &str| config.default_generation_parameters.get(name).and_then(Value::as_i64);
    let is_null = |name: &str| config.default_generation_parameters.get(name).is_some_and(Value::is_null);
    let provider = match &config.kind {
        LlmKind::LlmConfig { api_provider } if config.url.is_none() => api_provider.clone(),
        _ => None,
    };
    ModelChoice {
        models: vec![ModelRef { provider, model: config.model_id.clone() }],
        temperature: number("temperature"),
        top_p: number("top_p"),
        max_tokens: BOUNDS.iter().find_map(|name| whole(name)),
        unbounded: BOUNDS.iter().any(|name| is_null(name)),
        ..ModelChoice::default()
    }
}
