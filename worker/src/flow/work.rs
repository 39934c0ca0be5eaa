//! The work of a node in the phases of its turn.

use super::machine::{NEXT, NodeResult, Values};
use super::run::{FlowRun, NodeAnswer, NodeTurn};
use super::template::{render, text};
use super::tools::{ASK, RESULT, to_client};
use super::{agent, answer, nothing, parallel, remote};
use crate::model::{NamedModel, declared};
use crate::state::bodies::InferBody;
use crate::state::{Bodies, Claimed, Outbox, Stop, TurnHistory};
use crate::tool::request;
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::JobError;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_specs::agent_spec::Property;
use turnstone_specs::agent_spec::model::{NodeKind, ToolKind};

/// The messages with which a run begins: the arguments after its inputs.
///
/// # Errors
/// [`Stop::Fail`] when an argument is no message.
pub fn say_inputs(past: &mut TurnHistory, outbox: &mut Outbox) -> Result<usize, Stop> {
    let args: Vec<Value> = outbox.claimed.job.args.parse().unwrap_or_default();
    let mut said = 0;
    for arg in args.into_iter().skip(1) {
        let role = match arg["role"].as_str() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => return Err(not_a_message().into()),
        };
        let Some(content) = arg["content"].as_str() else { return Err(not_a_message().into()) };
        past.say(outbox, Message::text(role, content));
        said += 1;
    }
    Ok(said)
}

fn not_a_message() -> JobError {
    let message = "args: after the inputs of a flow come messages, each with `role` (user, assistant) and `content`, a text";
    JobError::new(FailureKind::Validation, message).for_good()
}

/// Returns the messages for the node's model; `None` when the turn has no such node.
pub fn messages(flow: Option<&FlowRun>) -> Option<Vec<Arc<Message>>> {
    let node = flow?.node.as_ref()?;
    let NodeKind::LlmNode { prompt_template, .. } = &node.node.kind else { return None };
    Some(vec![Arc::new(Message::text(Role::User, render(prompt_template, &node.inputs)))])
}

/// The model of the node or of its agent, with the name of its provider; `None` outside of flows.
pub fn model(claimed: &Claimed, flow: Option<&FlowRun>) -> Option<Result<NamedModel, String>> {
    let run = flow?;
    let config = match (run.node.as_ref().map(|current| &current.node.kind), run.crew.as_ref()) {
        (Some(NodeKind::LlmNode { llm_config, .. }), _) => llm_config,
        (_, Some(crew)) => match &crew.summarizer {
            Some(summarizer) => summarizer,
            None => &crew.team.agent()?.llm_config,
        },
        _ => return None,
    };
    (!declared::is_of_server(config)).then(|| claimed.deps.toolbox.declared()?.model(config))
}

/// Keeps the answer of the node's model for later phases. Returns the content when the turn is one of an agent, whose answer
/// is a message; its plan is the wait for the user, if the user is next.
pub fn keep_answer(
    outbox: &Outbox,
    flow: Option<&FlowRun>,
    content: String,
    calls: &[RequestedCall],
) -> (Option<NodeAnswer>, Option<String>) {
    let Some(run) = flow else { return (None, Some(content)) };
    if run.node.is_some() {
        return (Some(NodeAnswer { text: Some(content), ..NodeAnswer::default() }), None);
    }
    let asks = calls.is_empty() && run.crew.as_ref().is_some_and(|crew| crew.team.may_ask_user());
    let planned = asks.then(|| NodeAnswer::of_call(agent::user_is_next(outbox, &content)));
    (planned, Some(content))
}

/// Returns whether a `CatchExceptionNode` takes the failure of the node's model: when no further attempt
/// would be made.
pub fn catches(outbox: &Outbox, flow: Option<&FlowRun>, error: &JobError) -> bool {
    use FailureKind::{ContentFiltered, Model, ModelTimeout, ModelUnavailable, RateLimited};
    flow.is_some_and(|run| run.machine.catches())
        && matches!(error.kind, ContentFiltered | Model | ModelTimeout | ModelUnavailable | RateLimited)
        && outbox.claimed.is_final(outbox.position.outages, error)
}

/// INFER of a node that asks no model: what it says is said, and the call that it makes is planned. `None`
/// when a model is to be asked.
pub fn plan(past: &mut TurnHistory, outbox: &mut Outbox, run: &FlowRun) -> Option<NodeAnswer> {
    if let Some(crew) = &run.crew {
        return match crew.team.agent() {
            Some(_) => agent::exhausted(past, outbox, crew),
            None => remote::plan(outbox, past, crew),
        };
    }
    let NodeTurn { node, inputs, branches } = run.node.as_ref()?;
    if let Some(branches) = branches {
        return Some(parallel::plan(outbox, branches));
    }
    let call = |outbox: &Outbox, name: &str, arguments: Value| {
        let (call_id, name) = (outbox.planned_call(name), name.to_owned());
        NodeAnswer::of_call(RequestedCall { call_id, name, arguments })
    };
    Some(match &node.kind {
        NodeKind::LlmNode { .. } => return None,
        NodeKind::ToolNode(tool) if matches!(tool.kind, ToolKind::ClientTool) => {
            call(outbox, ASK, to_client(tool, &json!(inputs)))
        }
        NodeKind::ToolNode(tool) => call(outbox, &tool.head.name, json!(inputs)),
        NodeKind::ApiNode(_) => call(outbox, &node.head.name, json!(inputs)),
        NodeKind::InputMessageNode { message } => {
            let message = message.as_deref().map(|message| render(message, inputs)).unwrap_or_default();
            let key = node.outputs.first().map_or("user_input", |output| output.title.as_str());
            let requested = call(outbox, ASK, json!({"request_keys": {key: message}}));
            if !message.is_empty() {
                past.say(outbox, Message::text(Role::Assistant, message));
            }
            requested
        }
        NodeKind::OutputMessageNode { message } => {
            let message = render(message, inputs);
            past.say(outbox, Message::text(Role::Assistant, message));
            NodeAnswer::default()
        }
        _ => NodeAnswer::default(),
    })
}

/// The result of the node, when EXEC is done.
///
/// # Errors
/// [`Stop::Fail`] when the node has failed and no `CatchExceptionNode` contains it.
pub fn result(
    past: &TurnHistory,
    bodies: &Bodies,
    inferred: &InferBody,
    run: &FlowRun,
) -> Result<Option<NodeResult>, Stop> {
    let Some(current) = &run.node else { return Ok(None) };
    let id = current.node.head.id.clone();
    Ok(Some(match outputs(past, bodies, inferred, current) {
        Ok((outputs, branch)) => NodeResult { branch, ..NodeResult::of(id, outputs) },
        Err(error) => NodeResult::failed(id, caught(run, error)?),
    }))
}

/// Returns the message of a failure that a `CatchExceptionNode` around the node takes.
///
/// # Errors
/// [`Stop::Fail`] with the path of the node when none does.
pub fn caught(run: &FlowRun, error: JobError) -> Result<String, Stop> {
    if run.machine.catches() {
        return Ok(error.message);
    }
    let message = format!("node `{}`: {}", run.machine.path(), error.message);
    Err(JobError { message, retryable: false, ..error }.into())
}

fn outputs(
    past: &TurnHistory,
    bodies: &Bodies,
    inferred: &InferBody,
    current: &NodeTurn,
) -> Result<(Values, String), JobError> {
    let (node, inputs) = (&current.node, &current.inputs);
    let planned = inferred.node.as_ref();
    if let Some(why) = planned.and_then(|planned| planned.failed.as_deref()) {
        return Err(JobError::new(FailureKind::Model, why));
    }
    let outputs = match &node.kind {
        NodeKind::StartNode | NodeKind::EndNode { .. } => inputs.clone(),
        NodeKind::BranchingNode { mapping } => {
            let key = inputs.values().next().map(text).unwrap_or_default();
            let branch = mapping.get(&key).map_or("default", String::as_str);
            return Ok((nothing(), branch.to_owned()));
        }
        NodeKind::LlmNode { .. } => {
            let said = planned.and_then(|planned| planned.text.as_deref()).unwrap_or_default();
            let wrong = |why: String| JobError::new(FailureKind::OutputSchema, why);
            if let Some(error) = inferred.unusable() {
                return Err(error);
            }
            let outputs = answer::read(&node.outputs, said).map_err(wrong)?;
            checked(&node.outputs, outputs).map_err(wrong)?
        }
        NodeKind::ToolNode(tool) => {
            let value = outcome(past, bodies, planned)?;
            let value = match tool.kind {
                ToolKind::ClientTool => match value.get(RESULT) {
                    Some(result) => result.clone(),
                    None => value,
                },
                ToolKind::MCPTool { .. } => unwrapped(value),
                _ => value,
            };
            returned(&node.outputs, value)?
        }
        NodeKind::ApiNode(_) => request::outputs(&node.outputs, outcome(past, bodies, planned)?),
        NodeKind::InputMessageNode { .. }
        | NodeKind::ParallelMapNode { .. }
        | NodeKind::ParallelFlowNode(_) => match outcome(past, bodies, planned)? {
            Value::Object(answers) => answers,
            _ => nothing(),
        },
        _ => nothing(),
    };
    Ok((outputs, NEXT.to_owned()))
}

/// The result of an MCP tool. Servers wrap what is no object as `result`.
fn unwrapped(value: Value) -> Value {
    match value {
        Value::Object(mut map) if map.len() == 1 && map.contains_key(RESULT) => {
            map.remove(RESULT).unwrap_or_default()
        }
        other => other,
    }
}

/// The outputs of a tool: one is the value itself, several are members of an object.
fn returned(outputs: &[Property], value: Value) -> Result<Values, JobError> {
    match (outputs, value) {
        ([], _) => Ok(nothing()),
        ([only], value) => Ok(Values::from_iter([(only.title.clone(), value)])),
        (_, Value::Object(map)) => Ok(map),
        _ => Err(JobError::new(
            FailureKind::Tool,
            "the tool has several outputs, and returned no object with them",
        )),
    }
}

/// Checks that the outputs can be cast, so that a wrong answer is the failure of this node.
fn checked(outputs: &[Property], mut given: Values) -> Result<Values, String> {
    let cast = outputs.iter().map(|output| {
        let value = output.written(given.remove(&output.title)).map_err(|why| format!("output {why}"))?;
        Ok((output.title.clone(), value))
    });
    cast.collect()
}

/// The output of the node's call.
///
/// # Errors
/// The failure of the call.
pub fn outcome(past: &TurnHistory, bodies: &Bodies, planned: Option<&NodeAnswer>) -> Result<Value, JobError> {
    let call = planned.and_then(|planned| planned.call.as_ref());
    let recorded = || past.row(&call?.call_id)?.outcome.clone();
    match bodies.outcome.clone().or_else(recorded) {
        Some(ToolOutcome::Success { output }) => Ok(output),
        Some(failed) => {
            let error =
                failed.as_error().unwrap_or_else(|| JobError::new(FailureKind::Tool, "the call failed"));
            Err(error.for_good())
        }
        None => Err(JobError::new(FailureKind::Internal, "the outcome of the node's call is not recorded")),
    }
}
