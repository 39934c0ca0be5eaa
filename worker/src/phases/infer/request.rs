//! The request to the model.

use super::{prompt, turn_limit};
use crate::flow;
use crate::flow::run::FlowRun;
use crate::model::{Listener, ModelRequest, ToolOffer};
use crate::phases::exec::state_call;
use crate::phases::resol;
use crate::state::conversation::{images, size};
use crate::state::{Bodies, Claimed, Outbox, Stop, TurnHistory};
use std::time::Duration;
use turnstone_domain::agent::{OutputContract, ToolChoice};
use turnstone_domain::budget::{self, Allowance};

/// Returns the request of the turn, with its messages and tools.
pub fn request(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &Outbox,
    flow: Option<&FlowRun>,
) -> Result<ModelRequest, Stop> {
    let resolved = bodies.resolved()?;
    let (claimed, tool_turns) = (&outbox.claimed, outbox.position.tool_turns);
    let (agent, crew) = (&claimed.agent, flow.and_then(|run| run.crew.as_ref()));
    let mut tools: Vec<ToolOffer> = match claimed.may_call(tool_turns) {
        true => {
            let allowed = resolved.tools.iter().filter(|name| agent.actions.forbids(name).is_none());
            let own = allowed.filter_map(|name| resol::offer(claimed, bodies, name));
            own.chain(state_call::offers(agent)).chain(flow::offers(crew)).collect()
        }
        false => Vec::new(),
    };
    // A list that grows has room for four, and the turn keeps this one while its model thinks.
    tools.shrink_to_fit();
    // "required" applies to the first answer; afterwards the model may finish.
    let tool_choice = match agent.tool_choice {
        ToolChoice::Required if tool_turns > 0 => ToolChoice::Auto,
        choice => choice,
    };
    Ok(ModelRequest {
        system: prompt::system(agent),
        messages: flow::messages(flow)
            .unwrap_or_else(|| flow::transformed(past, crew, prompt::messages(claimed, past))),
        tools,
        tool_choice,
        output: agent.output.clone(),
        ..plain_request(claimed)
    })
}

/// Returns a request with the agent's settings, and without messages and tools.
pub fn plain_request(claimed: &Claimed) -> ModelRequest {
    let agent = &claimed.agent;
    ModelRequest {
        model: String::new(),
        system: String::new(),
        messages: Vec::new(),
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        temperature: agent.model.temperature,
        top_p: agent.model.top_p,
        frequency_penalty: agent.model.frequency_penalty,
        presence_penalty: agent.model.presence_penalty,
        max_tokens: most_tokens(claimed),
        unbounded: agent.model.unbounded,
        output: OutputContract::default(),
        timeout: agent
            .limits
            .model_timeout_ms
            .map_or(claimed.deps.options.model_timeout, Duration::from_millis),
        listener: Listener::default(),
    }
}

/// Returns the most tokens that an answer may have.
pub fn most_tokens(claimed: &Claimed) -> i64 {
    claimed.agent.model.max_tokens.unwrap_or(claimed.deps.options.max_tokens)
}

/// Returns the most tokens that the call can use within the rest of the budget, and how many of them the answer may have.
/// Returns `None` when none are left for an answer.
pub fn allowed(past: &TurnHistory, outbox: &Outbox, request: &ModelRequest) -> Option<Allowance> {
    budget::allow(bound(request), request.max_tokens, turn_limit::left(past, outbox))
}

/// Returns an upper bound of the tokens of a prompt. No tokenizer is needed: the bound comes from bytes, messages, tools
/// and pictures.
pub fn bound(request: &ModelRequest) -> i64 {
    let messages: usize = request.messages.iter().map(|message| size(message)).sum();
    let tools: usize = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len())
        .sum();
    let schema = request.output.schema.as_ref().map_or(0, |schema| schema.to_string().len());
    let bytes = request.system.len() + messages + tools + schema;
    let parts = request.messages.len() + request.tools.len() + 2;
    budget::prompt_upper_bound(bytes, parts, request.messages.iter().map(|message| images(message)).sum())
}
