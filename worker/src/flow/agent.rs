//! A turn of an agent inside a flow. Its phases are those of every agent; here is what the language adds: the calls
//! that control the run, the wait for the user, and the step that PERSIST records.

use super::machine::{NEXT, NodeResult};
use super::run::{Crew, NodeAnswer};
use super::team::{Consequence, Step};
use super::{answer, nothing, remote};
use crate::model::ToolOffer;
use crate::state::{Claimed, Stop, Turn};
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall, Role};
use turnstone_domain::{CallId, JobError, question};
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
pub fn exhausted(turn: &mut Turn) -> Option<NodeAnswer> {
    let team = &turn.crew()?.team;
    if !team.is_exhausted() {
        return None;
    }
    let (text, asks) = (team.exhaustion(), team.may_ask_user());
    turn.past.say(&mut turn.outbox, Message::text(Role::Assistant, text.as_str()));
    Some(NodeAnswer {
        call: asks.then(|| user_is_next(&turn.outbox.claimed, &text)),
        ..NodeAnswer::default()
    })
}

/// Returns the plan that INFER stores for an answer without calls: the wait for the user, if the user is next.
pub fn planned(turn: &Turn, content: &str, calls: &[RequestedCall]) -> Option<NodeAnswer> {
    let asks = turn.crew()?.team.may_ask_user() && calls.is_empty();
    asks.then(|| NodeAnswer {
        call: Some(user_is_next(&turn.outbox.claimed, content)),
        ..NodeAnswer::default()
    })
}

/// Returns the call that waits for the user's next message after this text.
pub fn user_is_next(claimed: &Claimed, content: &str) -> RequestedCall {
    let (call_id, name) = (CallId(claimed.deps.ids.next()), question::TOOLS[0].to_owned());
    RequestedCall { call_id, name, arguments: json!({"request_keys": {USER_INPUT: content}}) }
}

/// Says what follows the answer of the turn's agent.
///
/// # Errors
/// As [`result`].
pub fn say_consequence(turn: &mut Turn) -> Result<(), Stop> {
    if let Ok(consequence) = judged(turn)? {
        for (thread, message) in consequence.said {
            turn.past.say_in(&mut turn.outbox, thread, message);
        }
    }
    Ok(())
}

/// The effect of the turn on its team; `None` outside of an agent's turn.
///
/// # Errors
/// [`Stop::Fail`] when the node has failed and no `CatchExceptionNode` contains it.
pub fn result(turn: &mut Turn) -> Result<(Option<NodeResult>, Option<Step>), Stop> {
    let Some(crew) = turn.crew() else { return Ok((None, None)) };
    let node = crew.node.head.id.clone();
    match judged(turn)? {
        Ok(Consequence { step: Step::Finished(outputs), .. }) => {
            Ok((Some(NodeResult { node, outputs, branch: NEXT.to_owned(), failed: None }), None))
        }
        Ok(consequence) => Ok((None, Some(consequence.step))),
        Err(error) => {
            let failed = super::work::caught(turn, error)?;
            Ok((
                Some(NodeResult { node, outputs: nothing(), branch: NEXT.to_owned(), failed: Some(failed) }),
                None,
            ))
        }
    }
}

fn judged(turn: &mut Turn) -> Result<Result<Consequence, JobError>, Stop> {
    let inferred = turn.bodies.inferred()?;
    let Some(crew) = turn.crew() else {
        return Err(JobError::new(FailureKind::Internal, "the turn is none of an agent in a flow").into());
    };
    if turn.node().is_some() {
        return Ok(remote::judged(turn, crew, inferred.node.as_ref()));
    }
    if let Some(why) = inferred.node.as_ref().and_then(|planned| planned.failed.as_deref()) {
        return Ok(Err(JobError::new(FailureKind::Model, why)));
    }
    let Some(said) = turn.past.conversation.answer_in(turn.outbox.position.turn) else {
        return Ok(Err(JobError::new(FailureKind::Internal, "the answer of the agent is not recorded")));
    };
    if said.tool_calls.is_empty()
        && let Some(error) = inferred.unusable()
    {
        return Ok(Err(error));
    }
    let judged = crew.team.judge(crew.base.as_deref(), said);
    Ok(judged.map_err(|why| JobError::new(FailureKind::OutputSchema, why)))
}

/// Returns the schema of the arguments of a tool that the document declares.
pub fn arguments(inputs: &[turnstone_specs::agent_spec::Property]) -> Value {
    answer::schema(inputs)
}

/// Returns the transforms of the turn's agent, in order.
pub fn transforms(crew: Option<&Crew>) -> Vec<Arc<MessageTransform>> {
    crew.and_then(|crew| Some(crew.team.agent()?.transforms.clone())).unwrap_or_default()
}
