//! A turn of a remote agent: its message is a call like that of a tool, and its answer is said in the conversation.

use super::agent::user_is_next;
use super::run::{Crew, NodeAnswer};
use super::team::{Consequence, RemotePlace, Step};
use super::tools::ASK;
use super::work;
use crate::state::{Bodies, Outbox, TurnHistory};
use serde_json::{Value, json};
use std::sync::Arc;
use turnstone_domain::JobError;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::{Message, RequestedCall, Role};

/// INFER of a remote agent: the call with the messages that it has not seen, or the wait for the user without any.
pub fn plan(outbox: &Outbox, past: &TurnHistory, crew: &Crew) -> Option<NodeAnswer> {
    let (agent, place) = crew.team.remote(crew.base.as_deref())?;
    let messages = past.conversation.messages(&outbox.claimed.agent.memory);
    let is_answer = |message: &Arc<Message>| message.role == Role::Assistant && message.tool_calls.is_empty();
    let begins = messages.iter().rposition(is_answer).map_or(0, |at| at + 1);
    let open: Vec<&str> = messages[begins..]
        .iter()
        .filter(|message| message.role == Role::User)
        .map(|message| message.content.as_str())
        .collect();
    let call = if open.is_empty() {
        let said = begins.checked_sub(1).and_then(|at| messages.get(at));
        user_is_next(outbox, said.map(|message| message.content.as_str()).unwrap_or_default())
    } else {
        let RemotePlace { context, task } = place;
        let arguments = json!({"input": open.join("\n\n"), "context": context, "task": task});
        let name = agent.head().name.clone();
        let call_id = outbox.planned_call(&name);
        RequestedCall { call_id, name, arguments }
    };
    Some(NodeAnswer::of_call(call))
}

/// Returns what follows the call of a remote agent, or the message of the user.
///
/// # Errors
/// The failure of the agent, unless another agent asked it: then the failure is the outcome of that agent's call.
pub fn judged(
    past: &TurnHistory,
    bodies: &Bodies,
    crew: &Crew,
    planned: Option<&NodeAnswer>,
) -> Result<Consequence, JobError> {
    let base = crew.base.as_deref();
    if planned.and_then(|planned| planned.call.as_ref()).is_none_or(|call| call.name == ASK) {
        return Ok(Consequence { said: Vec::new(), step: Step::Heard });
    }
    match work::outcome(past, bodies, planned) {
        Ok(output) => {
            let id = |name: &str| output[name].as_str().map(str::to_owned);
            let place = RemotePlace { context: id("context"), task: id("task") };
            let heard = crew.team.heard(base, &said(&output), place);
            heard.map_err(|why| JobError::new(FailureKind::OutputSchema, why))
        }
        Err(error) => crew.team.missed(base, &error.message).ok_or(error),
    }
}

/// The answer of a remote agent as a message: its text, or its data as JSON.
fn said(output: &Value) -> String {
    match (output["text"].as_str().unwrap_or_default(), output.get("data")) {
        ("", Some(data)) => data.to_string(),
        (text, _) => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_the_answer_where_no_text_is() {
        assert_eq!(said(&json!({"text": "", "data": {"n": 1}})), "{\"n\":1}");
        assert_eq!(said(&json!({"text": "one", "data": {"n": 1}})), "one");
    }
}
