//! A turn of an agent inside a flow. Its phases are those of every agent; here is what the language adds: the calls
//! that control the run, the wait for the user, and the step that PERSIST records.

use super::machine::NodeResult;
use super::run::{Crew, FlowRun, NodeAnswer};
use super::team::{Consequence, Step};
use super::{remote, work};
use crate::model::ToolOffer;
use crate::state::bodies::InferBody;
use crate::state::{Bodies, Outbox, Stop, TurnHistory};
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_domain::{JobError, question};
use turnstone_specs::agent_spec::model::MessageTransform;

/// The key of the user's next message.
const USER_INPUT: &str = "user_input";

/// Returns the tools by which the agent of the turn controls the run.
pub fn offers(crew: Option<&Crew>) -> Vec<ToolOffer> {
    crew.map(|crew| crew.team.offers()).unwrap_or_default()
}

/// Returns true if a call controls the run of the flow.
pub fn controls(crew: Option<&Crew>, name: &str) -> bool {
    crew.is_some_and(|crew| crew.team.controls(name))
}

/// Returns the arguments of a call in the types that the document declares, as far as they can be cast.
pub fn cast(crew: Option<&Crew>, name: &str, arguments: Value) -> Value {
    let tool = crew.and_then(|crew| crew.team.agent()?.tools.iter().find(|tool| tool.head.name == name));
    match (tool, arguments) {
        (Some(tool), Value::Object(mut given)) => {
            for input in &tool.inputs {
                if let Ok(value) = input.written(given.get(&input.title).cloned()) {
                    given.insert(input.title.clone(), value);
                }
            }
            Value::Object(given)
        }
        (_, arguments) => arguments,
    }
}

/// INFER of an agent that may not call its model again before the user speaks.
pub fn exhausted(past: &mut TurnHistory, outbox: &mut Outbox, crew: &Crew) -> Option<NodeAnswer> {
    let team = &crew.team;
    if !team.is_exhausted() {
        return None;
    }
    let text = team.exhaustion();
    past.say(outbox, Message::text(Role::Assistant, text.as_str()));
    let call = team.may_ask_user().then(|| user_is_next(outbox, &text));
    Some(NodeAnswer { call, ..NodeAnswer::default() })
}

/// Returns the call that waits for the user's next message after this text.
pub fn user_is_next(outbox: &Outbox, content: &str) -> RequestedCall {
    let name = question::TOOLS[0].to_owned();
    let call_id = outbox.planned_call(&name);
    RequestedCall { call_id, name, arguments: json!({"request_keys": {USER_INPUT: content}}) }
}

/// Says what follows the answer of the turn's agent.
///
/// # Errors
/// [`Stop::Fail`] when the checkpoint of INFER cannot be read.
pub fn say_consequence(
    past: &mut TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    run: &FlowRun,
) -> Result<(), Stop> {
    let (inferred, Some(crew)) = (bodies.inferred()?, &run.crew) else { return Ok(()) };
    if let Ok(consequence) = judged(past, bodies, &inferred, (run, crew)) {
        for (thread, message) in consequence.said {
            past.say_in(outbox, thread, message);
        }
    }
    Ok(())
}

/// The effect of the turn on its team.
///
/// # Errors
/// [`Stop::Fail`] when the node has failed and no `CatchExceptionNode` contains it.
pub fn result(
    past: &TurnHistory,
    bodies: &Bodies,
    inferred: &InferBody,
    (run, crew): (&FlowRun, &Crew),
) -> Result<(Option<NodeResult>, Option<Step>), Stop> {
    let node = crew.node.head.id.clone();
    match judged(past, bodies, inferred, (run, crew)) {
        Ok(Consequence { step: Step::Finished(outputs), .. }) => {
            Ok((Some(NodeResult::of(node, outputs)), None))
        }
        Ok(consequence) => Ok((None, Some(consequence.step))),
        Err(error) => Ok((Some(NodeResult::failed(node, work::caught(run, error)?)), None)),
    }
}

fn judged(
    past: &TurnHistory,
    bodies: &Bodies,
    inferred: &InferBody,
    (run, crew): (&FlowRun, &Crew),
) -> Result<Consequence, JobError> {
    let planned = inferred.node.as_ref();
    if run.node.is_some() {
        return remote::judged(past, bodies, crew, planned);
    }
    if let Some(why) = planned.and_then(|planned| planned.failed.as_deref()) {
        return Err(JobError::new(FailureKind::Model, why));
    }
    let Some(said) = past.conversation.answer_in(bodies.turn) else {
        return Err(JobError::new(FailureKind::Internal, "the answer of the agent is not recorded"));
    };
    if said.tool_calls.is_empty()
        && let Some(error) = inferred.unusable()
    {
        return Err(error);
    }
    let judged = crew.team.judge(crew.base.as_deref(), said);
    judged.map_err(|why| JobError::new(FailureKind::OutputSchema, why))
}

/// Returns the transforms of the turn's agent, in order.
pub fn transforms(crew: Option<&Crew>) -> Vec<Arc<MessageTransform>> {
    crew.and_then(|crew| Some(crew.team.agent()?.transforms.clone())).unwrap_or_default()
}
