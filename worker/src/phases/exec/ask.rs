//! Calls of `ask_user`: the job parks until its user answers, and the answer is the call's outcome.
//!
//! The question passes the output guardrail first, because the model wrote it. The answers pass the input
//! guardrail before the model sees them (OAS-42, OAS-44).

use super::admission;
use super::tool_outcome::{Ending, Over, deliver};
use crate::phases::resol;
use crate::policy::restriction::{self, Checked};
use crate::policy::{exposes, guard};
use crate::state::journal::{self, Call};
use crate::state::{Bodies, Claimed, Outbox, Stop, Turn, TurnHistory};
use serde_json::Value;
use turnstone_domain::Wait;
use turnstone_domain::agent::Capability;
use turnstone_domain::error::FailureKind;
use turnstone_domain::message::RequestedCall;
use turnstone_domain::question::{AskedUser, Question};
use turnstone_domain::tool_call::{ToolCall, ToolOutcome};

/// The outcome for a model whose questions may not be shown, because it works for a guarded agent. No
/// guardrail has checked them; the guardrail of that agent checks only that agent's own words (OAS-43).
const NOBODY: &str = "there is nobody to ask: the agent that you work for has its words checked before its user sees them, and \
                      yours are not. Go on without an answer, or say what you have to know in what you answer";

/// Returns true if a call asks the user.
pub fn is_one(claimed: &Claimed, bodies: &Bodies, name: &str) -> bool {
    resol::callable(claimed, bodies, name).is_some_and(|(tool, _)| tool.asks_user())
}

/// Asks the user, or passes the answer to the model.
///
/// # Errors
/// [`Stop::Park`] until there is an answer, [`Stop::Fail`] when a guardrail does not pass or a reviewer
/// rejected.
pub async fn run(
    turn: &mut Turn,
    position: usize,
    requested: RequestedCall,
    allowed: bool,
) -> Result<(), Stop> {
    let row = turn.past.recalled_calls.iter().find(|row| row.call_id == requested.call_id).cloned();
    let mut call =
        Call { asked: requested, position, journalled: row.as_ref().map(|row| row.state), stub_of: None };
    if let Some(row) = row.filter(|row| row.outcome.is_some()) {
        return answered(turn, &call, row).await;
    }
    admission::watch_repetition(&turn.outbox.claimed, &mut turn.past, &call)?;
    let question = match allowable(&turn.past, &mut turn.bodies, &mut turn.outbox, &call, allowed)? {
        Ok(question) => question,
        Err(outcome) => {
            journal::plan(&mut turn.outbox, &mut call, true);
            let over = Over { outcome, handled: None, duration_ms: 0, ending: Ending::Refused };
            over.note(&mut turn.outbox, &call, false);
            deliver(turn, &call, over)?;
            return turn.outbox.barrier().await;
        }
    };
    guard::question(&turn.past, &mut turn.outbox, position, &question.prompt()).await?;
    if call.journalled.is_none() {
        journal::called(&mut turn.outbox, &call);
    }
    journal::plan(&mut turn.outbox, &mut call, true);
    let call_id = call.asked.call_id.clone();
    let exposes = exposes::now(&turn.outbox.claimed, &turn.past);
    Err(Stop::Park(Box::new(Wait::Input(AskedUser { call_id, question, exposes }))))
}

/// Returns the question to ask, or the refusal of the call.
fn allowable(
    past: &TurnHistory,
    bodies: &mut Bodies,
    outbox: &mut Outbox,
    call: &Call,
    allowed: bool,
) -> Result<Result<Question, ToolOutcome>, Stop> {
    let capability = match admission::callable(bodies, outbox, call, allowed) {
        Ok((_, capability)) => capability,
        Err(refusal) => return Ok(Err(refusal)),
    };
    if outbox.claimed.agent.guardrails.for_guarded {
        return Ok(Err(ToolOutcome::refused(FailureKind::Policy.code(), NOBODY)));
    }
    if let Checked::Denied(refusal) = restriction::before(past, outbox, call, &capability, true)? {
        return Ok(Err(refusal));
    }
    let wrong = |why: String| ToolOutcome::refused(FailureKind::ToolInput.code(), why);
    Ok(Question::read(&call.asked.arguments).map_err(wrong))
}

/// Journals the answer like any outcome, and passes it to the model.
async fn answered(turn: &mut Turn, call: &Call, row: ToolCall) -> Result<(), Stop> {
    let (outcome, duration_ms) = (row.outcome.unwrap_or_else(nothing), row.duration_ms.unwrap_or_default());
    let is_new = !row.withheld && matches!(outcome, ToolOutcome::Success { .. });
    let over = if is_new {
        if let ToolOutcome::Success { output } = &outcome {
            let said = texts(output);
            guard::answers(&turn.past, &mut turn.outbox, call.position, &said).await?;
            turn.outbox.screen_answers(&said)?;
        }
        let outcome = turn.outbox.screen_outcome(&call.asked.name, outcome);
        let capability = resol::capability(&turn.outbox.claimed, &turn.bodies, &call.asked.name);
        let capability = capability.unwrap_or_else(|| Capability::named(call.asked.name.clone()));
        Over::made(&turn.past, &mut turn.outbox, call, &capability, outcome, None, duration_ms)
    } else {
        Over::recalled(outcome, row.handled, duration_ms)
    };
    deliver(turn, call, over)?;
    turn.outbox.barrier().await
}

fn nothing() -> ToolOutcome {
    ToolOutcome::refused(FailureKind::Tool.code(), "there is no answer")
}

/// Returns the user's answer, value by value.
fn texts(output: &Value) -> Vec<String> {
    let values = output.as_object().into_iter().flat_map(|fields| fields.values());
    values.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect()
}
